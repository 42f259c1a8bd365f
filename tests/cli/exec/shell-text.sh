try "$PX" exec -c 'echo "$0 $# $1"; exit 42' one two
