# As an ordinary user without a cgroup: a limit that cannot be had ends the matter before anything starts.
as_user
try "$PX" exec --memory 64m -- echo RAN
try "$PX" exec --cpus 0.5 -- echo RAN
try "$PX" exec --preset untrusted -- echo RAN
