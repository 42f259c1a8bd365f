# Only our own: the shell's and its children's. pid 1 belongs to the box and is hidden.
"$PX" exec -c 'for p in /proc/[0-9]*; do [ "$p" = /proc/$$ ] || echo "other: $(cat $p/comm 2>/dev/null)"; done | grep -v "other: *$" | sort -u'
"$PX" exec -c 'cat /proc/1/environ /proc/1/maps 2>&1 | wc -c | sed "s/^[0-9][0-9]*$/not readable/"; ls /proc/1/fd 2>&1 | grep -c . | sed "s/.*/&/"' >/dev/null
