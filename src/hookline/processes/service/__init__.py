"""The resident service: command hooks are answered by a warm process, at the cost of a bare Python start.

`client` is what runs in the command hook: it hands its arguments, folder, environment and stdin to the user's service
over a Unix socket and passes the answer on; whatever goes wrong, it answers by itself. `server` is the service, which
only passes connections to workers. A `worker` has imported what hooks need and forks, so that an event with hooks of
the user's has a process of its own, as it would without the service. Until then that process is a spare one; it goes
on to the next event only after a guard of ours, and only if that has left nothing behind.

The client runs in every command hook, so `client`, `address` and `frames` import next to nothing.
"""
