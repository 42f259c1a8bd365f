# Without /proc hardly anything can be tried; the answer is none, and what to do.
as_root
unshare --mount true 2>/dev/null || skip 'no mount namespace can be made here'
try unshare --mount bash -c 'mount -t tmpfs none /proc && exec "$@"' sh "$(dirname "$PX")/px-main" doctor >all
grep -E '^/proc|^namespaces user |^tier|^exit' all
