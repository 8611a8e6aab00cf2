"""Set up one environment per agent framework, all at once: `python -m tools.frameworks [name …]`.

The frameworks' dependencies clash, so each has a virtual environment of its own in `.cache/frameworks`. One whose
requirements have not changed is left as it is. `run_in` runs one with the `hookline` of this checkout, whichever made
the environment.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".cache" / "frameworks"

ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "crewai": ("crewai==1.15.30",),  # the largest first
    "google-adk": ("google-adk==2.13.0", "mcp==2.3.0"),
    "langchain": ("langchain==1.4.7", "langgraph==1.2.22", "deepagents==0.7.32"),
    "openai-agents": ("openai-agents==0.24.0",),
    "pydantic-ai": ("pydantic-ai-slim==2.66.0", "langchain==1.4.7"),  # and a second one, for programs that have two
    "strands": ("strands-agents==1.62.0",),
    "agent-framework": ("agent-framework-core==1.23.0",),
    "semantic-kernel": ("semantic-kernel==1.45.0",),
    "dspy": ("dspy==3.4.1",),
    "llama-index": ("llama-index-core==0.14.25",),
    "agno": ("agno==3.1.10",),
    "smolagents": ("smolagents==1.26.0",),
    "haystack": ("haystack-ai==3.4.0",),
    "ag2": ("ag2==1.2.1",),
    "raw-loops": ("anthropic==2.9.0", "openai==3.51.0", "httpx"),
    "agent-hooks": ("agent-hooks-sdk[ctk]==0.1.0b3",),
}
"""Name → what is installed there: the versions that the adapters are tested with."""

SERVERS: dict[str, tuple[str, ...]] = {
    "mcp-servers": ("mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19", "mcp-server-fetch==2026.10.24"),
}
"""The same for MCP servers that the gateway is tested with."""

COMMON = ("msgspec>=0.19", "detect-secrets>=1.5", "prometheus-client>=0.20")
"""What Hookline itself needs there: its core, and the extras that audit log and metrics page use."""


def python_of(name: str) -> Path:
    """The environment's interpreter."""
    folder = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
    return FOLDER / name / folder


def is_ready(name: str) -> bool:
    """Whether `make frameworks` has made the environment."""
    return (FOLDER / name / ".ready").exists()


def environ(**more: str) -> dict[str, str]:
    """The variables to run an environment's interpreter with: `hookline` is this checkout's."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **more}


def run_in(name: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run an environment's interpreter to its end."""
    return subprocess.run(
        [str(python_of(name)), *arguments],
        capture_output=True, text=True, check=False, timeout=280, cwd=ROOT, env=environ(**variables),
    )  # fmt: skip


def set_up(name: str) -> str:
    """Make the environment if it is missing or its requirements changed; what was done, in one line."""
    wanted = (*COMMON, *(ENVIRONMENTS | SERVERS)[name])
    stamp, digest = FOLDER / name / ".ready", hashlib.sha256("\n".join((*wanted, sys.version)).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return f"{name}: ready"
    started = time.monotonic()
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    venv.create(FOLDER / name, symlinks=sys.platform != "win32")
    pip = [sys.executable, "-m", "pip", "--python", str(python_of(name)), "install"]
    options = ["-qq", "--disable-pip-version-check", "--no-compile"]
    done = subprocess.run([*pip, *options, *wanted], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name}: pip could not install {', '.join(wanted)}:\n{done.stderr}")
    [packages] = (FOLDER / name).glob("[Ll]ib/**/site-packages")
    (packages / "hookline-checkout.pth").write_text(f"{ROOT / 'src'}\n")
    stamp.write_text(digest)
    return f"{name}: installed in {time.monotonic() - started:.0f} s"


def main(argv: list[str] | None = None) -> int:
    """Set up the environments that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tools.frameworks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", nargs="*", choices=[*ENVIRONMENTS, *SERVERS, []], help="only these")
    names = parser.parse_args(argv).name or [*ENVIRONMENTS, *SERVERS]
    with ThreadPoolExecutor(3) as pool:
        for line in pool.map(set_up, names):
            if not line.endswith(": ready"):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
