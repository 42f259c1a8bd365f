# A runtime would make a missing mount point, in the caller's own tree; and a missing working directory.
need runc crun
for runtime in runc crun; do
    mkdir -p "$TMP/tree"
    says "$PX" exec --runtime $runtime -v "$TMP/tree:/tree" --tmpfs /tree/sub -- true
    says "$PX" exec --runtime $runtime -v "$TMP/tree:/tree" -w /tree/work -- true
    says "$PX" exec --runtime $runtime -v "$TMP/tree:/usr/no/such/place" -- true
    find "$TMP/tree" -mindepth 1
    mkdir "$TMP/tree/sub"
    "$PX" exec --runtime $runtime -v "$TMP/tree:/tree" --tmpfs /tree/sub -c 'echo x >/tree/sub/x; echo mounted'
    find "$TMP/tree" -mindepth 1 -printf '%P\n'
    rm -r "$TMP/tree"
done | sed '/^Why:$/d;/^Fix:$/d'
