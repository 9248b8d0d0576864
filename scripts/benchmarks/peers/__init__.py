"""The stores that are compared, each driven through its public API and its defaults.

These modules run in the environment of their store, where neither sessiondb nor the
other stores are installed: `turns` is the workload, `driver` the process of a phase, and
every other module has one store, as a class `Peer`.
"""
