"""Agents that work for another agent: in the foreground, in the background, or as teammates."""
