# A file with capabilities keeps them when it is written through a mapping, as a set-id file keeps its bit.
as_root
need python3
mkdir "$TMP/w"
cp /usr/bin/id "$TMP/w/tool"
give() { python3 -c 'import os, struct, sys
os.setxattr(sys.argv[1], "security.capability", struct.pack("<5I", 0x02000001, 0x400, 0, 0, 0))' "$1"; }
give "$TMP/w/tool" || skip 'this file system has no capabilities'
says "$PX" exec -v "$TMP/w:/w" -- echo RAN
says "$PX" exec -v "$TMP/w/tool:/w" -- echo RAN
says "$PX" exec -v "$TMP/w:/w:ro" -- echo read-only
rm "$TMP/w/tool"
cp /usr/bin/id "$TMP/w/tool"
python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.note", b"x")' "$TMP/w/tool"
says "$PX" exec -v "$TMP/w:/w" -- echo ordinary
