# The hidden switch for tests says what it took away; a word it does not know is an error.
need jq
"$PX" --json exec --without seccomp,landlock --without masks -- true | jq -c '[.isolation.missing[] | select(test("switched off"))], [.isolation.mechanisms[] | select(test("seccomp|landlock"))]'
says "$PX" exec --without nothing -- true
"$PX" exec --help | grep -c -e --without || true
