"""The tables of docs/explanation/flow.md, from the published packages: no network, no model (`make flow`)."""
