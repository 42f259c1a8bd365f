echo text >"$TMP/file"
echo other >"$TMP/other"
"$PX" exec -v "$TMP/file:/etc/motd:ro" -v "$TMP/other:/opt/deep/place/name" -c 'cat /etc/motd /opt/deep/place/name; echo written >/opt/deep/place/name; (echo x >/etc/motd) 2>/dev/null || echo ro'
cat "$TMP/file" "$TMP/other"
