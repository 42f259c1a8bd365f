# A caller that may start no process: nothing can be tried, so nothing is claimed.
as_user
need prlimit
try prlimit --nproc=1 "$PX" doctor >all
grep -E '^namespaces (user|pid) |^privileges seccomp filter|^boxes *require|^tier|^exit' all
