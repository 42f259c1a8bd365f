# root's own directory is closed in a box; what is bound below it is reached, and nothing else is seen there.
mkdir -p "$TMP/d/tool"
echo text >"$TMP/d/tool/f"
"$PX" exec -v "$TMP/d:/root/d:ro" -c 'cat /root/d/tool/f; ls /root 2>/dev/null || echo closed; (echo x >/root/x) 2>/dev/null || echo read-only'
"$PX" exec -c 'cat /root/d 2>/dev/null || echo closed'
