"$PX" exec --plan -- true >"$TMP/a"
"$PX" exec --plan -- true >"$TMP/b"
cmp "$TMP/a" "$TMP/b" && echo same
