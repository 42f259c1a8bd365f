# The same place twice: the last one is seen, and the same source at two places is one tree.
mkdir "$TMP/a" "$TMP/b"
chmod 777 "$TMP/a"
echo a >"$TMP/a/f"
echo b >"$TMP/b/f"
"$PX" exec -v "$TMP/a:/x" -v "$TMP/b:/x" -- cat /x/f
"$PX" exec -v "$TMP/a:/x" -v "$TMP/a:/y" -c 'echo new >/x/f; cat /y/f'
