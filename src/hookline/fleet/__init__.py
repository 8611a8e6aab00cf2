"""One policy and one audit trail over many machines.

A machine always judges with the last good policy it has; the network is never on a tool call's path. Policy comes in
as signed bundles, the audit log goes out as it is, chained, and the hub proves per machine that nothing is missing.
"""
