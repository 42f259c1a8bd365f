# ip gives up its privileges before it does anything: a box has none, and lets it.
need ip
"$PX" exec --net loopback -- ip -o addr show lo | sed -n 's/.* inet \([0-9.]*\).*/\1/p'
