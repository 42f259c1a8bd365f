# As root: a tree of another user keeps its owner outside and is the box's own inside.
as_root
mkdir "$TMP/w"
echo x >"$TMP/w/f"
chown -R 1234:1234 "$TMP/w"
chmod 700 "$TMP/w"
"$PX" exec -v "$TMP/w:/w" -c 'stat -c "%u:%g" /w/f; echo new >/w/g'
stat -c '%u:%g' "$TMP/w/g"
