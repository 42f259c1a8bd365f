# Files of the caller are the box's user's own inside, and what the box writes belongs to the caller outside.
mkdir "$TMP/w"
echo x >"$TMP/w/mine"
chmod 600 "$TMP/w/mine"
chmod 700 "$TMP/w"
"$PX" exec -v "$TMP/w:/w" -c 'cat /w/mine; stat -c "%u:%g" /w /w/mine; echo y >/w/new; mkdir /w/dir; ln -s mine /w/link; stat -c "%u:%g" /w/new /w/dir'
[ "$(stat -c '%u:%g' "$TMP/w/new" "$TMP/w/dir" "$TMP/w/link" | sort -u)" = "$(id -u):$(id -g)" ] || stat "$TMP/w/new"
rm "$TMP/w/mine" "$TMP/w/new" "$TMP/w/link"
rmdir "$TMP/w/dir"
