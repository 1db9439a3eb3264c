#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command line: exit codes, which stream, help, misspellings.
. "$(dirname "$0")/lib.sh"

expect 0 version "$dgc" --version
shows out dgc
empty err
expect 0 'version --verbose' "$dgc" --version --verbose
shows out backends
expect 0 help "$dgc" --help
shows out predict
empty err
for verb in check compile opt train eval predict launch bench devices inspect weights checkpoint report verify explain; do
  expect 0 "$verb --help" "$dgc" $verb --help
  shows out "usage: dgc $verb"
  empty err
done
expect 0 'help VERB' "$dgc" help train
shows out 'usage: dgc train'
expect 2 'help of what is not there' "$dgc" help trian
shows err "did you mean 'train'"
expect 2 'misspelt --verbose' "$dgc" --version --verbos
# The manual knows every option.
verbs='check compile opt train eval predict launch bench devices inspect weights checkpoint report verify explain'
for option in $(for verb in $verbs; do "$dgc" $verb --help; done | sed -n 's/^  [-a-z, ]*--\([a-z-]*\).*/\1/p' | sort -u); do
  grep -qF -- "\-\-$(echo "$option" | sed 's/-/\\-/g')" "$source/docs/dgc.1" && pass || fail "dgc.1 says nothing of --$option"
done
# And every variable of the environment; graph.md every header line.
for name in $(grep -rhoE --include='*.[ch]' --include='*.py' '(getenv\("|environ.get\(")DGC_\w+' "$source" | grep -o 'DGC_.*' | grep -v DGC_SIMULATED | sort -u); do
  grep -q "($name[,)]" "$source/tools/cli_environment.def" && pass || fail "cli_environment.def says nothing of $name"
done
expect 0 'a variable that nothing reads' env DGC_SPIN= DGC_SPIM=off DGC_SIMULATED_NEW=1 "$dgc" check "$samples/linear.dsl"
shows err 'dgc check: warning: nothing reads DGC_SPIM in the environment: did you mean DGC_SPIN?'
[ "$(grep -c DGC_ err)" = 1 ] && pass || fail 'it is said once, and of nothing else'
for wrong in DGC_SPIN=of DGC_SHARED=no DGC_BF16_UNITS=0 DGC_CACHE=/not/a/folder; do
  expect 2 "$wrong" env "$wrong" "$dgc" check "$samples/linear.dsl"
  shows err "dgc check: error: ${wrong%%=*} in the environment is on or off, not '${wrong#*=}'"
done
shows err 'help: XDG_CACHE_HOME names the folder'
expect 2 'a number with a unit' env DGC_DATA_MEMORY=1G "$dgc" check "$samples/linear.dsl"
shows err "DGC_DATA_MEMORY in the environment is a number of bytes, not '1G'"
expect 0 'values as they should be' env DGC_SPIN=on DGC_CACHE=off DGC_DATA_MEMORY=0 "$dgc" check "$samples/linear.dsl"
empty err
for key in $(sed -n 's/^[A-Z]*(\(.*, \)\{0,1\}\([a-z_]*\)\(, [A-Z_]*\)\{0,1\}).*/\2/p' "$source/ir/graph/config.def"); do
  grep -q "\"$key\"" "$source/docs/graph.md" && pass || fail "graph.md's grammar has no header line $key"
done
expect 2 'no verb' "$dgc"
empty out
expect 2 'misspelt verb' "$dgc" trian
shows err "did you mean 'train'"
expect 2 'misspelt option' "$dgc" train "$samples/digits.dsl" --epoch 3
shows err 'did you mean --epochs'
expect 2 "another verb's option" "$dgc" bench "$samples/digits.dsl" --epochs 3
shows err 'it is an option of dgc train'
expect 2 'one dash' "$dgc" train "$samples/digits.dsl" -devices cpu:0
shows err 'did you mean --devices'
for words in 'batch_size=--batch N' 'learning-rate=--set rate=X' 'max_epochs=--epochs N' 'bs=--batch N' 'early_stopping=--patience N' \
    'load=--init-from FILE' 'load-weights=--init-from FILE' 'restore=--resume=FILE' 'optimizer=the optimizer in the model' \
    'precision=--set precision=bf16' 'dtype=types in the model' 'test_data=--eval-data NAME=FILE' 'shuffle=nothing: rows are shuffled' \
    'validation-split=--rows 0:8000 --eval-rows'; do
  expect 2 "an option of others" "$dgc" train "$samples/digits.dsl" "--${words%%=*}" 3
  shows err "help: write ${words#*=}"
done
for words in 'fit=train MODEL' 'evaluate=eval MODEL' 'export=compile MODEL --emit stablehlo' 'summary=compile MODEL --emit summary' 'a.dsl=check FILE'; do
  expect 2 "a verb of others" "$dgc" "${words%%=*}"
  shows err "help: write dgc ${words#*=}"
done
expect 2 'launch without --' "$dgc" launch -n 2 train a.dsl
shows err "'train' stands behind --"
if [ "$(id -u)" = 0 ] && mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
  expect 1 'launch by root' env -u OMPI_ALLOW_RUN_AS_ROOT "$dgc" launch -n 2 -- train "$samples/digits.dsl" --steps 1
  shows err 'without OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1'
fi
expect 2 'two formats on one output' "$dgc" predict "$samples/digits.dsl" --json
shows out '--json wants --output NAME=FILE'
expect 2 'nothing like a verb' "$dgc" --strategy auto
shows err 'verbs are check'
expect 2 'auto for graph text' "$dgc" opt "$source/tests/golden/passes/pack.dg" --passes replicate --batch 4 --strategy auto
shows err '--emit strategies'
expect 2 'no value' "$dgc" train "$samples/digits.dsl" --epochs
expect 2 'not a number' "$dgc" train "$samples/digits.dsl" --epochs many
shows err "not 'many'"
expect 2 'too much' "$dgc" check a.dsl b.dsl
expect 2 'too little' "$dgc" check
expect 2 'bad device' "$dgc" compile "$samples/digits.dsl" --devices npu:0
shows err npu:0
expect 2 'bad backend' "$dgc" bench "$samples/digits.dsl" --backend abacus
shows err abacus
expect 2 'bad stage' "$dgc" compile "$samples/digits.dsl" --emit plcaed
shows err "did you mean 'placed'"
expect 2 'bad strategy' "$dgc" compile "$samples/digits.dsl" --strategy mirorred
shows err mirrored
expect 2 'bad auto' "$dgc" compile "$samples/digits.dsl" --strategy atuo
shows err "did you mean 'auto'"
for hosts in -1 a:99999 a: 'a b'; do
  expect 2 "no host: $hosts" "$dgc" compile "$samples/linear.dsl" --cluster "worker=$hosts"
  shows err 'no host'
done
expect 0 'hosts' "$dgc" compile "$samples/linear.dsl" --cluster 'worker=[::1]:2222,b-1.c:80,d' -o /dev/null
# Nothing trains here as if it trained there: hosts are for processes that somebody has started.
"$dgc" compile "$samples/linear.dsl" --cluster 'worker=2;ps=1' -o numbers.dg
"$dgc" compile "$samples/linear.dsl" --cluster 'worker=a:1,b;ps=[::1]:9' -o hosts.dg
grep -v '^  cluster ' numbers.dg >a.dg
grep -v '^  cluster ' hosts.dg >b.dg
same a.dg b.dg
expect 0 'verify hosts' "$dgc" verify "$samples/linear.dsl" --cluster 'worker=a:1,b;ps=[::1]:9' --numeric
expect 0 'explain hosts' "$dgc" explain "$samples/linear.dsl" weight --cluster 'worker=a:1,b;ps=[::1]:9'
expect 0 'one step' "$dgc" train "$samples/digits.dsl" --quiet --steps 1 --checkpoint one.safetensors
for verb in train bench eval predict; do
  for hosts in 'worker=a:1,b;ps=[::1]:9' 'worker=localhost:2222,localhost:2223;ps=1' 'ps=1;worker=127.0.0.1,b'; do
    from='--checkpoint one.safetensors'
    [ $verb = bench ] && from=
    [ $verb = train ] && from='--checkpoint far.safetensors'
    expect 2 "$verb on $hosts" "$dgc" $verb "$samples/digits.dsl" $from --cluster "$hosts"
    shows err "' of --cluster names hosts, and this is the only process"
    grep -q 'in this one: --cluster "\(worker=2;ps=1\|ps=1;worker=2\)"' err && pass || fail "hosts: $(cat err)"
    empty out
  done
done
[ ! -e far.safetensors ] && pass || fail 'a refused cluster left a checkpoint'
expect 0 'numbers' "$dgc" train "$samples/digits.dsl" --quiet --steps 2 --cluster 'worker=2;ps=1'
expect 2 'a cluster without workers' "$dgc" compile "$samples/linear.dsl" --cluster ps=1
shows err 'add a worker'
sed 's|^  predict.*|&\n  strategy parameter_server|' "$samples/linear.dsl" >servers.dsl
expect 2 'a clause that the devices do not allow' "$dgc" compile servers.dsl
shows err 'servers.dsl:15:12: note: the model asks for its strategy here'
# What a strategy does not know it refuses, all settings alike; in a model it is the model that is wrong.
refused() {
  expect 2 "$*" "$dgc" compile "$samples/linear.dsl" --devices cpu:0-1 "$@"
  shows err "leave out $3"
}
for strategy in mirrored central_storage replicate; do
  refused --strategy $strategy --staleness 1
  refused --strategy $strategy --min-part-bytes 10
done
refused --strategy mirrored --uneven
refused --strategy round_robin --uneven
refused --strategy central_storage --loss-scaling per_tower
refused --strategy mirrored --parameter-device cpu:0
refused --strategy replicate --cross-device ring
refused --strategy round_robin --packs 2
refused --strategy central_storage --bytes-per-pack 99
for setting in 'mirrored(uneven = true)' 'mirrored(min_part_bytes = 9)' 'mirrored(balance = "size")' \
  'mirrored(parameter_device = "cpu:0")' 'mirrored(staleness = 1)' 'mirrored(loss_scaling = "per_tower")' \
  'round_robin(cross_device = "ring")' 'round_robin(packs = 2)' 'round_robin(balance = "weight")' \
  'mirrored(cross_device = "wire")' 'replicate(loss_scaling = "half")' 'mirrored(consolidation_device = "cpu:9")' \
  'central_storage(parameter_device = "npu")' 'mirrored(packs = 0)' 'mirrored(towers = 20000)' \
  'mirrored(packs = 2, bytes_per_pack = 3)'; do
  sed "s|^  predict.*|&\n  strategy $setting|" "$samples/linear.dsl" >setting.dsl
  expect 1 "$setting" "$dgc" check setting.dsl --devices cpu:0-1
  grep -q '^setting.dsl:15:[0-9]*: error: ' err && grep -qF "15 |   strategy $setting" err && pass ||
    fail "$setting: $(cat err)"
done
sed 's|^  predict.*|&\n  strategy mirrored(packs = 2)|' "$samples/linear.dsl" >setting.dsl
expect 2 'an option over a clause' "$dgc" check setting.dsl --devices cpu:0-1 --cross-device wire
"$dgc" compile "$samples/linear.dsl" --emit grad | sed 's/^  stage source/&\n  balance weight/' >header.dg
expect 1 'a wrong header' "$dgc" opt header.dg --passes=replicate --batch 4
shows err 'header.dg:3:3: error: variables can be balanced by size'
expect 2 'more towers than there may be' "$dgc" compile "$samples/linear.dsl" --towers 16385
shows err 'from 1 to 16384'
expect 2 'bad pass' "$dgc" compile "$samples/digits.dsl" --disable-pass plcae
shows err "did you mean 'place'"
expect 2 'a pass that is needed' "$dgc" compile "$samples/digits.dsl" --disable-pass place
expect 2 'a plan without gradients' "$dgc" bench "$samples/digits.dsl" --disable-pass grad
shows err 'pass grad must run before'
expect 2 'a pass too early' "$dgc" opt --passes place "$source/tests/golden/passes/pack.dg"
shows err 'as in --passes=replicate,place'
expect 2 'a plan without sums' "$dgc" compile "$samples/digits.dsl" --devices cpu:0-1 --disable-pass collectives --emit plan
shows err 'pass collectives must run'
expect 2 'no steps to time' "$dgc" bench "$samples/linear.dsl" --steps 0
shows err 'give 1 to 1000000'
expect 2 'too many steps to time' "$dgc" bench "$samples/linear.dsl" --steps 99999999999
expect 0 'no steps' "$dgc" train "$samples/digits.dsl" --steps 0 --quiet --checkpoint begin.safetensors
expect 0 'no epochs' "$dgc" train "$samples/digits.dsl" --epochs 0 --quiet --checkpoint none.safetensors
same begin.safetensors none.safetensors
expect 2 'nowhere to save' "$dgc" train "$samples/digits.dsl" --steps 3 --checkpoint-every 2
shows err 'no --checkpoint FILE'
expect 2 'a ring of workers' "$dgc" compile "$samples/linear.dsl" --cluster 'worker=2;ps=1' --cross-device ring
shows err 'use strategy multi_worker_mirrored'
expect 2 'no such prediction' "$dgc" predict "$samples/digits.dsl" --checkpoint none.safetensors --output odds=p.npy
shows err 'it predicts probability'
expect 2 'no such format' "$dgc" predict "$samples/digits.dsl" --checkpoint none.safetensors --output probability=p.png
shows err 'must end in .npy, .csv or .txt'
expect 2 'no text' "$dgc" predict "$samples/digits.dsl" --checkpoint none.safetensors --output probability=p.txt
shows err 'a text is of bytes, u8, and probability is f32'
expect 1 'no such model' "$dgc" check "$samples/digits.dsl" --model diggits
shows err 'has digits'
expect 2 'no range' "$dgc" train "$samples/digits.dsl" --rows 8000
shows err 'rows: write begin:end'
expect 2 'eval without variables' "$dgc" eval "$samples/digits.dsl"
shows err --checkpoint
expect 1 'missing model' "$dgc" check missing.dsl
shows err missing.dsl
empty out

expect 0 devices "$dgc" devices
shows out /cpu:0
expect 0 'devices as JSON' "$dgc" devices --json
python3 -m json.tool <out >/dev/null && pass || fail 'devices --json is no JSON'
expect 0 'devices without a GPU' env DGC_CUDA_PATH=/nowhere "$dgc" devices
shows out 'no GPU: '
expect 0 'cpu:0' "$dgc" compile "$samples/linear.dsl" --devices cpu:0 --emit placed -o numbered.dg
for word in cpu all ' cpu '; do
  expect 0 "devices by the word $word" env DGC_CUDA_PATH=/nowhere "$dgc" compile "$samples/linear.dsl" --devices "$word" \
    --emit placed -o named.dg
  same numbered.dg named.dg
done
expect 3 'every GPU where there is none' env DGC_CUDA_PATH=/nowhere "$dgc" bench "$samples/linear.dsl" --devices gpu
expect 3 'a GPU that is not there' env DGC_CUDA_PATH=/nowhere "$dgc" bench "$samples/linear.dsl" --devices gpu:3
test "$(wc -l <err)" = 1 && pass || fail 'a GPU that is not there: more than one line'

expect 0 check "$dgc" check "$samples/digits.dsl"
shows out ok
empty err
for stage in ast summary graph grad replicated placed fused plan memory llvm dot json html; do
  expect 0 "emit $stage" "$dgc" compile "$samples/digits.dsl" --devices cpu:0-1 --emit $stage
  empty err
  [ -s out ] && pass || fail "nothing emitted for $stage"
done
expect 0 '-o' "$dgc" compile "$samples/digits.dsl" --devices cpu:0-1 --strategy central_storage --emit placed -o a.dg
empty out
expect 0 opt "$dgc" opt a.dg -o b.dg
same a.dg b.dg
"$dgc" compile "$samples/digits.dsl" --entry eval --emit graph >>two.dg
"$dgc" compile "$samples/digits.dsl" --entry train --emit graph >>two.dg
expect 0 'all graphs' "$dgc" opt two.dg
[ "$(grep -c '^graph' out)" = 2 ] && pass || fail 'opt does not print both graphs'
expect 0 'one graph' "$dgc" opt two.dg --graph digits.train --passes=simplify,grad
shows out 'graph digits.train {'
grep -q digits.eval out && fail 'opt --graph prints another one' || pass
expect 0 'an option that comes too late' "$dgc" opt a.dg --towers 4
same out a.dg
shows err 'warning: graph digits.train is replicated already'
for sample in "$samples"/*.dsl; do expect 0 "check $sample" "$dgc" check "$sample" --devices cpu:0-1; done
expect 2 'no such graph' "$dgc" opt two.dg --graph digits.trian
shows err "did you mean 'digits.train'"
expect 2 'nothing like a graph' "$dgc" opt two.dg --graph nosuch
shows err 'it holds digits.eval, digits.train'
expect 0 'dump-dir' "$dgc" compile "$samples/digits.dsl" --dump-dir dumps -o /dev/null
[ "$(ls dumps | wc -l)" -ge 5 ] && pass || fail "dumps: $(ls dumps)"
expect 0 time-passes "$dgc" compile "$samples/digits.dsl" --time-passes -o /dev/null
shows err simplify
expect 0 roundtrip "$dgc" compile "$samples/digits.dsl" --devices cpu:0-3 --stress=roundtrip --verify-each -o /dev/null
node=$(sed -n 's/^  \([a-z_.0-9]*\) *= matmul.*/\1/p' a.dg | head -1)
expect 0 explain "$dgc" explain "$samples/digits.dsl" "$node" --devices cpu:0-1
shows out "$node"
expect 0 'explain as JSON' "$dgc" explain "$samples/digits.dsl" "$node" --devices cpu:0-1 --json
python3 -c 'import json, sys; sys.exit(json.load(open("out"))["name"] != sys.argv[1])' "$node" && pass || fail "no JSON"
for stage in memory traffic placed; do
  expect 0 "$stage as JSON" "$dgc" compile "$samples/digits.dsl" --emit $stage --devices cpu:0-1 --json
  python3 -c 'import json; json.load(open("out"))["graph"]' && pass || fail "no JSON"
done
expect 2 'plan as JSON' "$dgc" compile "$samples/digits.dsl" --emit plan --json
expect 2 'explain nothing' "$dgc" explain "$samples/digits.dsl" no.such.node
shows err '--emit placed'
# Who asked: the model's clause, or the option by its own name.
sed 's|^  predict.*|&\n  strategy central_storage(parameter_device = "/cpu:1", towers = 4)|' "$samples/linear.dsl" >clause.dsl
expect 0 'explain a clause' "$dgc" explain clause.dsl weight --devices cpu:0-1 --towers 2
shows out 'towers 2 (--towers)'
shows out 'strategy central_storage (the model, clause.dsl:15)'
shows out 'parameter-device /cpu:1 (the model, clause.dsl:15)'
expect 0 'explain staleness' "$dgc" explain "$samples/linear.dsl" weight --cluster 'worker=2;ps=1' --staleness 0
shows out 'staleness 0 (--staleness)'
shows out '(default: the tasks of the cluster)'
expect 0 'explain a batch per tower' "$dgc" explain "$samples/linear.dsl" weight --devices cpu:0-1 --batch-is per_replica --batch 4
shows out 'batch 8 (default: so many rows for each tower)'
shows out 'batch-per-replica 4 (--batch)'
expect 2 'strategies as JSON' "$dgc" compile "$samples/digits.dsl" --emit strategies --json
expect 0 'auto where the default does not fit' "$dgc" compile "$samples/linear.dsl" --devices cpu:0-1 --strategy auto --balance size
shows err '* round_robin'
grep -q default err && fail 'a default that does not fit is listed' || pass
expect 2 'auto where nothing fits' "$dgc" compile "$samples/linear.dsl" --devices cpu:0-1 --strategy auto --balance size --packs 2
shows err 'nothing to balance'
shows err 'round_robin sums each gradient where its variable is'
expect 2 'auto with a device that is not there' "$dgc" compile "$samples/linear.dsl" --devices cpu:0-1 --strategy auto --parameter-device cpu:7
shows err 'note: central_storage: the parameter device cpu:7 is not among the devices'

# Certificates.
expect 0 verify "$dgc" verify "$samples/linear.dsl" --devices cpu:0-1 --towers 5 --numeric
shows out 'linear.train: 5 towers, mirrored, 2 devices, 128 rows'
shows out '5 copies of 14 nodes'
shows out 'equal to 1'
expect 0 'placed text' "$dgc" compile "$samples/linear.dsl" --devices cpu:0-1 -o placed.dg
expect 0 'verify text' "$dgc" verify placed.dg --source "$samples/linear.dsl"
expect 0 'verify text alone' "$dgc" verify placed.dg
shows out 'needs the source'
expect 2 'verify one graph that is not there' "$dgc" verify placed.dg --graph nosuch
shows err 'it holds linear.train'
expect 2 'a source of a model' "$dgc" verify "$samples/linear.dsl" --source "$samples/linear.dsl"
shows err 'is a model, and --source is for graph text'
for more in '' '--staleness 1'; do
  expect 0 "placed text in parts $more" "$dgc" compile "$samples/digits.dsl" --set hidden=6 --cluster 'worker=2;ps=2' --min-part-bytes 16 --batch 7 $more -o parts.dg
  expect 0 "verify text in parts $more" "$dgc" verify parts.dg --source "$samples/digits.dsl" --set hidden=6 --numeric
done
sed '/^  update step.update$/d' placed.dg >wrong.dg
expect 4 'verify a graph without an update' "$dgc" verify wrong.dg --source "$samples/linear.dsl"
shows err 'nothing writes this copy'
sed 's/= div loss/= mul loss/' placed.dg >wrong.dg
expect 4 'verify a wrong graph' "$dgc" verify wrong.dg --source "$samples/linear.dsl"
shows err 'scale: loss.mean: '
shows err 'the source has: loss.mean = div'
shows out 'scale      WRONG'
sed 's/batch=128/batch=127/' placed.dg >wrong.dg
expect 4 'verify a graph of two batches' "$dgc" verify wrong.dg
expect 1 'verify what is not there' "$dgc" verify nowhere.dg
expect 1 'verify against another model' "$dgc" verify placed.dg --source "$samples/digits.dsl"
shows err "no source graph 'linear.train'"

# The loss of an epoch is that of all train statements together: here 1 + 10, whatever the rows.
cat >sum.dsl <<'MODEL'
model sum() {
  input x : f32[B]
  var a : f32 = 1
  var b : f32 = 10
  train first = a + 0 * mean(x) with sgd(rate = 0.0)
  train second = mean(b + 0 * x) with sgd(rate = 0.0)
}
MODEL
printf 'x\n1\n2\n3\n' >x.csv
printf 'a,b,c,d,y\n1,2,3,4,5\n2,3,4,5,6\n' >wide.csv
expect 1 'too many columns' "$dgc" train "$samples/linear.dsl" --data x=wide.csv --data y=wide.csv:y
shows err 'FILE.csv:1-4'
expect 0 'columns of one file' "$dgc" train "$samples/linear.dsl" --data x=wide.csv:1-4 --data y=wide.csv:y
expect 0 'two losses' "$dgc" train sum.dsl --data x=x.csv --batch 2
shows err 'loss 11 '
expect 0 'an end inside of an epoch' "$dgc" train sum.dsl --data x=x.csv --batch 2 --steps 3
shows err 'epoch 1  step 2/3  loss 11 '
shows err 'epoch 2  step 3/3  loss 11 '

# A table with a name for each column: --data FILE stands in the place of the one that the model reads all inputs from.
cat >people.dsl <<'MODEL'
use nn
model people(learning_rate = 0.1) {
  input city : i32[B]
  input age  : f32[B]
  input y    : f32[B]
  x = stack([age / 50, cast(city, f32)], axis = 1)
  p = squeeze(nn.dense(x, 1), 1)
  train mean(square(p - y)) with sgd(learning_rate)
  predict years = age
  predict said  = p
  data train { city = "people.csv:city:category"; age = "people.csv:age"; y = "people.csv:y" }
}
MODEL
printf 'city,age,y\nRome,30,1\nOslo,50,2\n' >people.csv
printf 'age,city\n7,Oslo\n8,Rome\n9,Lima\n' >others.csv
expect 0 'one table' "$dgc" train people.dsl --steps 2 --checkpoint people.safetensors
expect 0 'another table' "$dgc" predict people.dsl --checkpoint people.safetensors --data others.csv --output all.csv
[ "$(cut -d, -f1 all.csv | tr '\n' ' ')" = 'years 7.0 8.0 9.0 ' ] && pass || fail 'all predictions stand side by side in one CSV'
[ "$(head -1 all.csv)" = 'years,said' ] && pass || fail "the columns have names: $(head -1 all.csv)"
expect 0 'each column by itself' "$dgc" predict people.dsl --checkpoint people.safetensors --output each.csv \
  --data city=others.csv:city:category --data age=others.csv:age
same all.csv each.csv
"$dgc" predict people.dsl --checkpoint people.safetensors --data - <others.csv >piped.csv 2>err
same all.csv piped.csv
expect 2 'all in an array' "$dgc" predict people.dsl --checkpoint people.safetensors --data others.csv --output all.npy
shows err 'write .csv, or choose one'
mkdir moved && mv people.csv moved
expect 0 'a table elsewhere' "$dgc" train people.dsl --steps 1 --data moved/people.csv
expect 0 'a folder' "$dgc" train people.dsl --steps 1 --data moved
expect 1 'a table that is not there' "$dgc" predict people.dsl --checkpoint people.safetensors --data other.csv
shows err 'cannot read other.csv: No such file'
mv moved/people.csv .
expect 2 'data for training alone' "$dgc" eval people.dsl --checkpoint people.safetensors
shows err 'help: the model has a block `data train` alone: --eval-rows A:B takes rows of that'
expect 0 'rows of it' "$dgc" eval people.dsl --checkpoint people.safetensors --eval-rows 0:1
expect 2 'a folder to evaluate on' "$dgc" eval people.dsl --checkpoint people.safetensors --eval-data .
shows err 'eval-data: . is a folder'
# What is misspelt, and what others say: the message says what to write.
while IFS='|' read -r code words shown; do
  expect "$code" "$words" "$dgc" $words
  shows err "$shown"
done <<'ROWS'
1|train people --steps 1|help: there is people.dsl
2|eval people.dsl people.safetensors|help: write --checkpoint people.safetensors
2|eval people.dsl --checkpoint --rows 0:1|--checkpoint needs a value, and '--rows' is an option: FILE
1|train people.dsl --set lr=0.1|help: did you mean `learning_rate`?
1|train people.dsl --set depth=3|help: it has `learning_rate`
2|train people.dsl --set learning_rate 3|in one word, not by 'learning_rate'
2|train people.dsl --depth 3|help: a parameter of the model is set by --set depth=VALUE
2|train people.dsl --max_iters 3|help: write --steps N
2|train people.dsl --lr-scheduler cosine|help: write the rate in the model as a function of the step
2|train people.dsl --num-towers 3|help: write --towers N
2|predict people.dsl --out x.csv|help: write --output NAME=FILE
2|eval people.dsl --ckpt people.safetensors|help: write --checkpoint FILE
2|eval people.dsl --weights people.safetensors|help: write --checkpoint FILE
2|train people.dsl --weights people.safetensors|help: write --init-from FILE, or to go on --resume=FILE
2|train people.dsl --devices cuda:1|help: NVIDIA's are gpu:0, gpu:1 and so on
2|train people.dsl --devices 2|help: 2 of them are cpu:0-1, or gpu:0-1
2|train people.dsl --epochs 0.5|help: a part of an epoch is so many steps: --steps N
2|train people.dsl --checkpoint-every 5min|help: it is a number of steps, as 500, or a time, as 30s, 10m or 1h
3|train people.dsl --steps 1 --checkpoint a/b/c.safetensors|help: make its folder first: mkdir -p a/b
2|train people.dsl --memory-limit 2T|help: it may have a unit: 500MB, 2GB or 512MiB
2|train people.dsl --memory-limit 9999999999GB|expected an integer from 1 to
2|train people.dsl --memory-limit GB|expected an integer from 1 to
2|train people.dsl --timeout 5min|help: it may have a unit: 30s, 10m or 1h
2|train people.dsl --timeout 25h|expected an integer from 0 to 86400
2|train people.dsl --threads 2GB|expected an integer from 1 to 1024
1|eval people.dsl --checkpoint people.csv|cannot load people.csv: it is a text, and no safetensors file
1|check placed.dg|help: a graph as text is read by `dgc opt`, `dgc verify` and `dgc diff`
1|diff people.dsl placed.dg|help: this is no graph text: `dgc compile MODEL --emit placed -o FILE` makes one
2|compile people.dsl --entry evaluate|help: did you mean 'eval'?
2|compile people.dsl --emit ir|help: 'graph' and 'placed' are dgc's own
2|diff placed.dg placed.dg --stat|help: write nothing: the last line says how many nodes differ
2|compile people.dsl --out x.dg|help: write -o FILE
2|generate people.dsl|help: write dgc predict MODEL
2|fmt people.dsl|help: write dgc compile MODEL --emit ast
ROWS
expect 0 'units' "$dgc" train people.dsl --steps 1 --memory-limit 2GB --timeout 10m --bytes-per-pack 16KiB
for limit in 1KiB=1024 1kB=1000 1KB=1000; do
  expect 2 "a limit of ${limit%=*}" "$dgc" train people.dsl --steps 1 --memory-limit ${limit%=*}
  shows err "and ${limit#*=} are allowed"
done
expect 0 '--output of one text' "$dgc" compile people.dsl --emit placed --output output.dg
expect 0 '-o of one text' "$dgc" compile people.dsl --emit placed -o o.dg
same output.dg o.dg
printf '\211HDF\r\n\032\n%0100d' 0 >k.h5
expect 1 "Keras' checkpoint" "$dgc" eval people.dsl --checkpoint k.h5
shows err 'it is an HDF5 file'
finish
