# The same place twice is a mistake; the same source at two places is one tree.
mkdir "$TMP/a" "$TMP/b"
chmod 777 "$TMP/a"
echo a >"$TMP/a/f"
says "$PX" exec -v "$TMP/a:/x" -v "$TMP/b:/x/" -- true
"$PX" exec -v "$TMP/a:/x" -v "$TMP/a:/y" -c 'echo new >/x/f; cat /y/f'
