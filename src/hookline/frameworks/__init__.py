"""The same hooks inside the agent frameworks: one adapter per framework, imported where it is used.

from hookline.frameworks import langchain

agent = create_agent(model, tools, middleware=[langchain.HooklineMiddleware(hooks)])
"""
