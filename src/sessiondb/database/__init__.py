"""One opened database: what both façades share.

`core` owns connections and the writer, `queries` are the reads under the names
of the façades, `sharing` leases and streams, `importing` meets readers of
foreign formats, `notifier` and `watching` report commits.
"""
