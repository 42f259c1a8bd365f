# Where a box of the full tier starts, as root or as an ordinary user, every mechanism that it needs is enforced, and proved.
"$PX" exec --require full -- true || skip 'no box of the full tier starts here'
"$PX" doctor >all || { cat all; exit 1; }
# Each row that the full tier needs, and the last line; what else there is depends on the host.
grep -E '^GROUP|^.{30}(enforced|degraded|absent|starts|refused) +full( |$)|^tier:' all
