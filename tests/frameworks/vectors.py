"""What the AGENT-HOOKS conformance kit's pytest plugin collects: one test per vector."""


def test_conformance(agent_hooks_assert: None) -> None:
    """The vector holds for the harness that the command line names."""
