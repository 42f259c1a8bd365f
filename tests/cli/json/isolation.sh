# What is in force, by name.
need jq
"$PX" --json exec -- true | jq -r '.isolation | .tier, (.mechanisms[] | select(test("^(namespaces|root|privileges|no_new_privs|seccomp|landlock|ids)"))) | sub("[0-9]+$"; "N") | sub("ids=.*"; "ids=SOME")' | sort
