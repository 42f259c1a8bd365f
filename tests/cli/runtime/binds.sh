# Files keep their owner on the host; nothing can be written where it must not be.
need runc crun
for runtime in runc crun; do
    mkdir -p "$TMP/$runtime/ro" "$TMP/$runtime/rw"
    echo data >"$TMP/$runtime/ro/file"
    "$PX" exec --runtime $runtime -v "$TMP/$runtime/ro:/ro:ro" -v "$TMP/$runtime/rw:/rw" -v "$TMP/$runtime/ro/file:/one" -c '
        cat /ro/file /one
        (echo x >/ro/new) 2>/dev/null || echo read-only
        echo made >/rw/new && chmod 4755 /rw/new 2>/dev/null || echo no set-id
        echo more >>/one'
    stat -c '%u:%g %a' "$TMP/$runtime/rw/new" | sed "s/^$(id -u):$(id -g) /caller /"
    cat "$TMP/$runtime/ro/file"
done
