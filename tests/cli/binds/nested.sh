# One inside the other, in both orders, where the inner place exists; nothing is made in either tree.
mkdir -p "$TMP/outer/inner" "$TMP/inner"
echo outer >"$TMP/outer/f"
echo inner >"$TMP/inner/f"
"$PX" exec -v "$TMP/outer:/o:ro" -v "$TMP/inner:/o/inner" -c 'cat /o/f /o/inner/f'
"$PX" exec -v "$TMP/inner:/o/inner" -v "$TMP/outer:/o:ro" -c 'cat /o/f /o/inner/f'
find "$TMP/outer" "$TMP/inner" -mindepth 1 | sed "s,$TMP,," | sort
