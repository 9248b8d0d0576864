"""One opened database: the part that both façades share.

`facade` lists the verbs and reads of both. `core` opens and closes the file and commits
units; `reading` and `connections` run the reads of `queries`, in the caller's thread
and in threads of their own; `lifetime` knows what is open in this process. `leases` and
`streams` write over time, `feed` and `subscriptions` report commits, `worktrees` knows
where directories belong, `damage` what cannot be read.
"""
