mkdir "$TMP/rw" "$TMP/ro"
echo one >"$TMP/rw/f"
echo two >"$TMP/ro/f"
chmod 777 "$TMP/rw"
chmod 666 "$TMP/rw/f" "$TMP/ro/f"
"$PX" exec -v "$TMP/rw:/a" -v "$TMP/ro:/b:ro" -c 'cat /a/f /b/f; echo new >/a/f; mkdir /a/d; (echo no >/b/f) 2>/dev/null || echo "b is read-only"; (touch /b/g) 2>/dev/null || echo "b stays so"'
cat "$TMP/rw/f" "$TMP/ro/f"
ls "$TMP/rw"
"$PX" exec -v "$TMP/rw:/a:rw" -v "$TMP/ro" -c "cat $TMP/ro/f"
