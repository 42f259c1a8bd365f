# A request and an answer as one JSON object each; errors too.
mkdir -p j && printf 'caf\303\251' >j/a.txt
f() { "$PX" --json file "$@" --root j=j:rw; }
f read --input - <<<'{"path": "j/a.txt", "offset": 1, "max_chars": 2}'
f write --input - <<<'{"path": "j/b.txt", "content": "a\u0000b"}' && od -An -c j/b.txt
f can-read j/zzz
try f can-read nope
f roots
for bad in '{"path": "j/a\u0000.txt"}' '{"path": 7}' '{"path": "j/a.txt", "max_chars": -1}' '{"path": "j/a.txt", "other": 1}' '[]' '{' '{"path":"j/a.txt","path":"x"}' '{}'; do
    f read --input - <<<"$bad" | sed 's/"details".*//; s/is no JSON: .*/is no JSON/' || true
done
