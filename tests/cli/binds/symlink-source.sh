# The caller named it, so what it leads to is shown; a link inside the tree leads nowhere outside it.
mkdir "$TMP/real" "$TMP/tree"
echo real >"$TMP/real/f"
echo secret >"$TMP/secret"
ln -s real "$TMP/link"
ln -s "$TMP/secret" "$TMP/tree/out"
ln -s ../../../../../../../etc/shadow "$TMP/tree/up"
ln -s /etc/hostname "$TMP/tree/abs"
ln -s nowhere "$TMP/dangling"
"$PX" exec -v "$TMP/link:/x:ro" -c 'cat /x/f'
"$PX" exec -v "$TMP/tree:/t" -c 'cat /t/out /t/up 2>/dev/null; cat /t/abs'
says "$PX" exec -v "$TMP/dangling:/x" -- echo RAN
