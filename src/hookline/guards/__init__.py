"""Hooks we ship: one line each to install.

hooks.add(paths.stay_inside())
hooks.add(commands.block(["rm -rf *", "sudo *"]))
hooks.add(secrets.block())
hooks.add(approvals.auto(["ls *", "git status"]))
hooks.add(budget.limit(tool_calls=200, seconds=900))
hooks.add(flow())
"""
