# The command's ids are those that were asked for, whatever ids the caller has; and no id of the box is a 0 of anybody's.
need runc crun
for runtime in runc crun; do
    "$PX" exec --runtime $runtime -- sh -c 'id -u; id -g; id -un; cat /proc/self/uid_map /proc/self/gid_map' >"$TMP/out"
    head -3 "$TMP/out"
    awk 'NR > 3 && $2 == 0 { print "0 is mapped" }' "$TMP/out"
    "$PX" exec --runtime $runtime --user 1500:1600 -v "$TMP:/w" -- sh -c 'id -u; id -g; stat -c %u:%g /w /tmp; echo x >/w/new'
    stat -c %u:%g "$TMP/new" | sed "s/^$(id -u):$(id -g)$/the caller's/"
    rm "$TMP/new"
done
