# A box that stays has the changes of its root until it goes.
need_overlay
export PX_HOME=$TMP/home
name=o$(unique)
"$PX" box start --name "$name" --rootfs "$TMP/rootfs" --overlay >/dev/null
"$PX" box exec "$name" -- /bin/busybox sh -c 'echo kept >/etc/x'
"$PX" box exec "$name" -- /bin/busybox cat /etc/x
"$PX" box stop "$name" >/dev/null
ls "$TMP/rootfs/etc"
