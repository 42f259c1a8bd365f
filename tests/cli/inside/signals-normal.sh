# Dispositions and masks of the caller do not reach the box.
(trap '' TERM INT HUP PIPE USR1; "$PX" exec -- cat /proc/self/status | grep -E '^Sig(Ign|Blk|Cgt)')
