make_rootfs
cd "$TMP"
"$PX" exec --rootfs rootfs -- echo relative
cd rootfs
"$PX" exec --rootfs . -- echo here
