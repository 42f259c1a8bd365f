# What the caller may not read is no secret way to it.
as_user
if [ -r /etc/shadow ]; then skip '/etc/shadow can be read here'; fi
try "$PX" exec -v /etc/shadow:/x:ro -- cat /x 2>/dev/null
says "$PX" exec -v /root/x:/x -- true
