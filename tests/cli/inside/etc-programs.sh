# What ordinary programs read in /etc is there, of the host's own and read-only; what the caller shows stands for itself.
need python3
[ -r /etc/services ] && [ -r /etc/protocols ] || skip 'this host has no /etc/services'
"$PX" exec -- python3 -c 'import socket; print(socket.getservbyname("http"), socket.getprotobyname("udp"))'
"$PX" exec -c 'cmp /etc/services - && { echo more >>/etc/services; } 2>/dev/null || echo read-only' -i </etc/services
mkdir "$TMP/own" && echo 'mine 7/tcp' >"$TMP/own/services"
"$PX" exec -v "$TMP/own/services:/etc/services:ro" -c 'cat /etc/services'
# A file that not everybody may read is left out.
if [ "$AS" = root ] && unshare --mount true 2>/dev/null; then
    unshare --mount bash -c 'cp /etc/services "$1/closed" && chmod 0600 "$1/closed" && mount --bind "$1/closed" /etc/services &&
        "$0" exec -c "test ! -e /etc/services && echo left out"' "$PX" "$TMP/own"
else
    echo 'left out'
fi
