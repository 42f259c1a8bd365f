echo file >"$TMP/file.tar"
says "$PX" exec --rootfs "$TMP/nosuch" -- true
says "$PX" exec --rootfs "$TMP/file.tar" -- true
says "$PX" exec --base nosuch-name -- true
