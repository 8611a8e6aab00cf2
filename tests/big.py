"""What `make test` leaves out and `make test-all` adds: tests that need large installs or minutes of two cores.

Each row says what its files are, for the line that `make test` ends with. A path is a file or a whole folder.
"""

BIG: dict[str, tuple[str, ...]] = {
    "the real agent CLIs and the official SDKs": (
        "tests/hosts/claude_code/test_confined.py", "tests/hosts/claude_code/test_pairs.py",
        "tests/hosts/claude_code/test_real.py", "tests/hosts/claude_code/test_sdk.py", "tests/hosts/prove",
        "tests/hosts/test_approvals.py", "tests/hosts/test_confined_hosts.py", "tests/hosts/test_families.py",
        "tests/hosts/test_flow_hosts.py", "tests/hosts/test_real.py", "tests/hosts/test_servers_behind.py",
        "tests/agent/stream_json/test_sdk_session.py",
        "tests/events/test_tool_inputs.py",
    ),
    "the agent frameworks": ("tests/frameworks",),
    "real MCP servers behind the gateway": (
        "tests/hosts/gateway/test_owasp.py", "tests/hosts/gateway/test_page.py",
        "tests/hosts/gateway/test_servers.py", "tests/hosts/gateway/test_typescript.py",
    ),
    "the console in a browser": (
        "tests/records/console/test_accessibility.py", "tests/records/console/test_browser.py",
        "tests/records/console/test_report.py", "tests/records/approvals/test_browser.py",
    ),
    "every variable at every entry": ("tests/cli/test_every_gate.py",),
    "the tables of confined lines": (
        "tests/sandbox/test_calls.py", "tests/sandbox/test_changes.py", "tests/sandbox/test_cold_lines.py",
        "tests/sandbox/test_commands_handed_on.py", "tests/sandbox/test_commands_spelt.py",
        "tests/sandbox/test_more_ordinary_lines.py", "tests/sandbox/test_ordinary_lines.py",
        "tests/sandbox/test_egress.py", "tests/sandbox/test_egress_attacks.py", "tests/sandbox/test_placeholders.py",
        "tests/sandbox/test_projects.py", "tests/sandbox/test_tables_as_user.py",
        "tests/sandbox/test_writes_by_detour.py", "tests/sandbox/test_writes_by_name.py",
    ),
    "the fleet on real hubs": (
        "tests/fleet/test_cluster.py", "tests/fleet/test_demo.py", "tests/fleet/test_faults.py",
        "tests/fleet/test_hub.py", "tests/fleet/test_keeps_going.py", "tests/fleet/test_service_leaf.py",
        "tests/records/console/test_fleet.py",
    ),
    "the attacks on learned rules": ("tests/guards/test_learned_attacks.py",),
    "the differential tests against cold Python": ("tests/runners/test_warm_alike.py",),
    "the public types and the site": ("tests/test_types.py", "tests/test_site.py"),
}  # fmt: skip

SLOWEST = (
    "tests/processes/service/test_bad_input.py", "tests/test_readme.py", "tests/cli/test_unruly_hooks.py",
    "tests/test_docs.py", "tests/cli/test_hostile_names.py", "tests/cli/test_inbox.py",
    "tests/sandbox/test_protected.py", "tests/cli/test_gate_environment.py", "tests/processes/service/test_client.py",
    "tests/sandbox/test_confine.py", "tests/guards/test_documented_patterns.py", "tests/cli/test_until_exit.py",
    "tests/hosts/claude_code/test_cli_channel.py", "tests/contract_hooks/test_contract_hooks.py",
    "tests/sandbox/test_blocked_programs.py", "tests/sandbox/test_secrets.py", "tests/hosts/gateway/test_listen.py",
    "tests/cli/test_shared_project.py", "tests/examples/test_examples.py", "tests/agent/test_contract.py",
    "tests/cli/test_answer.py", "tests/sandbox/test_warm.py",
)  # fmt: skip
"""What `make test` starts with where it has not run before; from then on it knows how long each file took."""


def is_big(path: str) -> bool:
    """Whether a file, relative to the checkout, is one of them."""
    return any(path == row or path.startswith(f"{row}/") for rows in BIG.values() for row in rows)
