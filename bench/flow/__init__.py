"""The tables of docs/explanation/flow.md from the published packages: offline, without a model (`make flow`)."""
