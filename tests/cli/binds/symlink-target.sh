# A link in the way of a mount point is not followed out of the box.
mkdir "$TMP/tree" "$TMP/d" "$TMP/outside"
chmod 755 "$TMP" "$TMP/outside"
ln -s "$TMP/outside" "$TMP/tree/link"
says "$PX" exec -v "$TMP/tree:/t" -v "$TMP/d:/t/link" -- echo RAN
says "$PX" exec -v "$TMP/tree:/t" -v "$TMP/d:/t/link/x" -- echo RAN
ls -A "$TMP/outside" "$TMP/d"
