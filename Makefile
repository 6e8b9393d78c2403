# make run, make test: everything a fresh clone needs. Both set up .venv once and reuse it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
unexport PYTHONDONTWRITEBYTECODE  # with it every process compiles the project again

.PHONY: run test nightly lint bench parser parser-quick second confidence connectives arguments scorer predictor docs lock clean help

help:            ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "discorpora needs Python 3.11 or newer; set PYTHON=python3.11")'
	@echo "installing the packages into $(VENV): this takes some minutes"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt torch
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dedup,dev,eval,report,stanza,wikipedia,zoo]'
	touch $(STAMP)

run: $(STAMP)    ## build everything from the embedded sample, then show what was built
	PATH="$(CURDIR)/$(BIN):$$PATH" luigi --module workflows BuildAll
	@$(BIN)/discorpora status --config sample

test: $(STAMP)   ## the test suite (CI), a file on each of two cores at a time
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

nightly: $(STAMP) ## the test suite with the crash, fuzz and scale campaigns
	$(BIN)/pip install --quiet -c constraints.txt -e '.[audit]'
	$(BIN)/python -m pytest --nightly

PROSE = README.md CONTRIBUTING.md RELEASING.md SECURITY.md docs
lint: $(STAMP)   ## ruff (lint, format), mypy, hadolint; codespell and proselint on the prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/hadolint Dockerfile
	$(BIN)/codespell $(PROSE) CHANGELOG.md discorpora.py corpora extract zoo workflows
	$(BIN)/proselint check --config proselint.json $(filter %.md,$(PROSE)) $(shell find docs -name '*.md')

bench: $(STAMP)  ## the benchmarks: ratios against a named baseline in the same run
	for f in tests/bench/bench_*.py; do $(BIN)/python $$f || exit 1; done

DATA ?= $(or $(DISCORPORA_DATA),../shared/data)
TREEBANK ?= $(DATA)/treebank
NOVELS ?= $(DATA)/books
BACKBONE ?= sentence-transformers/all-MiniLM-L6-v2
# Running text that the teacher parses: sources with a number of words (0: all).
SILVER ?= discoeval:$(DATA)/discoeval/SP/wiki@0 discoeval:$(DATA)/discoeval/BSO/wiki@0 \
    discoeval:$(DATA)/discoeval/DC/wiki@0 coherence:$(DATA)/coherence/instead_wikipedia.jsonl@0 \
    irc:$(DATA)/irc@0 jsonl:$(DATA)/books/*.jsonl@900000

parser: export OMP_NUM_THREADS = 1
parser: export OPENBLAS_NUM_THREADS = 1
parser: $(STAMP) ## train the embedded parser again: teacher, silver trees, parser (2 hours)
	rm -rf build/parser
	OMP_NUM_THREADS=2 $(BIN)/python -m zoo.parser.teacher --treebank $(TREEBANK) \
	    --dev $(TREEBANK)/en_ewt --backbone $(BACKBONE) --output build/parser/teacher.safetensors
	$(BIN)/python -m zoo.parser.silver build/parser/teacher.safetensors --output build/parser/silver.conllu \
	    --exclude $(TREEBANK) $(foreach source,$(SILVER),--source $(subst @, ,$(source)))
	$(BIN)/python -m zoo.parser.train --treebank $(TREEBANK) --silver build/parser/silver.conllu \
	    --output build/parser/out

parser-quick: export OMP_NUM_THREADS = 1
parser-quick: export OPENBLAS_NUM_THREADS = 1
parser-quick: $(STAMP) ## prove the parser's recipe in a minute
	rm -rf build/parser-quick
	$(BIN)/python -m zoo.parser.train --treebank $(TREEBANK) --output build/parser-quick --quick

# The second parser reads single sentences, from their last word.
REVERSED = --reverse --set recipe.group_sentences=1
FOLD = $(BIN)/python -m zoo.parser.train --dev $(TREEBANK)/en_ewt --set training.max_steps=2200 \
    --set training.dropout=0.2 --set regularisation.max_steps=500 --set finishing.max_steps=100

second: export OMP_NUM_THREADS = 1
second: export OPENBLAS_NUM_THREADS = 1
second: $(STAMP) ## train the second embedded parser again, which checks the first (20 minutes)
	rm -rf build/second
	$(BIN)/python -m zoo.parser.train --treebank $(TREEBANK) --output build/second --seed 1 $(REVERSED) \
	    --set training.max_steps=5000 --set training.dropout=0.2 --set regularisation.max_steps=1000 \
	    --set finishing.max_steps=300

confidence: export OMP_NUM_THREADS = 1
confidence: export OPENBLAS_NUM_THREADS = 1
confidence: $(STAMP) ## learn the confidence of pairs again: four parsers, four models (40 minutes)
	$(BIN)/python -m extract.calibrate folds --treebank $(wildcard $(TREEBANK)/en_ewt/*-train.conllu $(TREEBANK)/en_gum/train/*.conllu) --output build/folds
	for fold in 0 1; do \
	    $(FOLD) --treebank build/folds/train-$$fold.conllu --output build/folds/parser-$$fold --seed $$fold && \
	    $(FOLD) --treebank build/folds/train-$$fold.conllu --output build/folds/second-$$fold --seed 1$$fold $(REVERSED) \
	    || exit 1; done
	$(BIN)/python -m extract.calibrate fit build/folds --ratings docs/results/pairs/ratings.jsonl \
	    --novels $(addprefix jsonl:,$(wildcard $(NOVELS)/*.jsonl)) --output extract/confidence.json

connectives: export OMP_NUM_THREADS = 1
connectives: export OPENBLAS_NUM_THREADS = 1
connectives: $(STAMP) ## learn the explicit connectives again, after `make confidence`: its parsers (10 minutes)
	$(BIN)/python -m extract.connectives.fit fit --treebank $(TREEBANK)/en_gum --gdtb $(DATA)/gdtb \
	    --folds build/folds --output extract/connectives/model.npz

arguments: export OMP_NUM_THREADS = 1
arguments: $(STAMP) ## learn the arguments of connectives again, after `make confidence`: its parsers (5 minutes)
	$(BIN)/python -m extract.arguments.fit fit --treebank $(TREEBANK)/en_gum --gdtb $(DATA)/gdtb \
	    --folds build/folds --output extract/arguments/model.npz

# Novels that the scorer is judged by, and never trained on.
RESERVED ?= gatsby sherlock time-machine
JUDGED = $(foreach name,$(RESERVED),$(wildcard $(NOVELS)/*$(name)*.jsonl))

# The steps of `make scorer`. One that is done is not done again, and a training goes on where it
# stopped: with other data or another backbone, remove build/scorer first.
SHIP = $(BIN)/python -m zoo.coherence.ship
TRAIN = $(BIN)/discorpora train coherence/minilm --bf16 true --dataset build/scorer/orders

build/scorer/texts: | $(STAMP)
	rm -rf $@-*
	$(SHIP) texts --output $@ \
	    --novels $(filter-out $(JUDGED),$(wildcard $(NOVELS)/*.jsonl)) --exclude $(wildcard $(DATA)/coherence/*.jsonl) \
	    --articles conllu:$(TREEBANK)/en_gum/train discoeval:$(DATA)/discoeval/DC/wiki discoeval:$(DATA)/discoeval/BSO/wiki

build/scorer/held: | $(STAMP)
	rm -rf $@-*
	$(SHIP) texts --output $@ --novels $(JUDGED) --articles conllu:$(TREEBANK)/en_gum/dev

build/scorer/orders: | build/scorer/texts
	$(SHIP) orders build/scorer/texts --output $@

build/scorer/model: | build/scorer/texts
	rm -rf $@-unfinished
	$(SHIP) scorer build/scorer/texts --backbone $(BACKBONE) --output $@-unfinished
	mv $@-unfinished $@

scorer: export OMP_NUM_THREADS = 1
scorer: $(STAMP) | build/scorer/held build/scorer/orders build/scorer/model ## make and measure the shipped coherence scorer again (four hours)
	$(TRAIN)@pairwise --backbone build/scorer/model --output build/scorer/first --batch_size 16 \
	    --max_tokens 256 --max_steps 1500 --anneal_calls 1500 --anneal_every 16 --learning_rate 1e-4 --final_learning_rate 4e-6 \
	    --eval_steps 375 --max_eval_rows 600
	$(TRAIN)@contrastive --backbone build/scorer/first --output build/scorer/second --batch_size 8 \
	    --objective contrastive --negatives 3 --threads 2 --max_tokens 256 --max_steps 1400 --anneal_calls 1400 --anneal_every 8 \
	    --learning_rate 8e-5 --final_learning_rate 3e-6 --eval_steps 0 --max_eval_rows 200
	$(TRAIN)@contrastive --backbone build/scorer/second --output build/scorer/ranker --batch_size 16 \
	    --objective contrastive --negatives 2 --threads 2 --max_tokens 384 --max_steps 1200 --anneal_calls 1200 \
	    --anneal_every 16 --learning_rate 6e-5 --final_learning_rate 2e-6 --eval_steps 600 --max_eval_rows 400
	rm -rf build/scorer/shipped
	$(SHIP) ship build/scorer/model --ranker build/scorer/ranker --texts build/scorer/texts \
	    --unseen build/scorer/held --output build/scorer/shipped

# Novels that choose the settings of the marker predictor; those of RESERVED judge it.
CHOOSING ?= treasure-island dorian-gray
CHOSEN = $(foreach name,$(CHOOSING),$(wildcard $(NOVELS)/*$(name)*.jsonl))

predictor: export OMP_NUM_THREADS = 1
predictor: $(STAMP) ## make and measure the shipped marker predictor again (an hour)
	rm -rf build/predictor
	$(BIN)/python -m zoo.dissent.ship novels --output build/predictor/novels --validation $(CHOSEN) \
	    --test $(JUDGED) --train $(filter-out $(JUDGED) $(CHOSEN),$(wildcard $(NOVELS)/*.jsonl))
	$(BIN)/discorpora build --config build/predictor/novels/novels.toml --output build/predictor/build
	$(BIN)/python -m zoo.dissent.ship ship build/predictor/build/novels/datasets/dissent \
	    --backbone $(BACKBONE) --output build/predictor/shipped

# Afterwards: discorpora compare build/rows/*.json
# DISCOEVAL: what `discorpora build --config discoeval_open` makes. DATASETS: a folder with the datasets
# dissent, criteria and conpono, such as those of `discorpora build --config discoeval_rows`.
DISCOEVAL ?= build/discoeval_open/datasets
DATASETS ?= build/discoeval_rows/datasets
# DC has a limit of its own: its classifier with 2,000 hidden units takes most of the time.
LIMIT ?= 2000
DC_LIMIT ?= 1000
THREADS ?= 2
ROW = build/rows/$(@:row-%=%)
EVALUATE = $(BIN)/discorpora evaluate discoeval --data $(DISCOEVAL) --seeds 1 \
    --second_opinion false --dtype bfloat16 --threads $(THREADS) --name $(@:row-%=%)
define judge
$(EVALUATE) $(1) --tasks SP,BSO,SSP --limit $(LIMIT) --json $(ROW).json
$(EVALUATE) $(1) --tasks DC --limit $(DC_LIMIT) --json $(ROW)-dc.json
endef
MODEL = build/rows/models/$(@:row-%=%)
FIT = --output $(MODEL) --threads $(THREADS) --dataset $(DATASETS)
ON_MINILM = --backbone $(BACKBONE) --bf16 true --save_steps 100

ROWS ?= surface words sif mean cls cls_mean nsp criteria dissent conpono

rows: $(addprefix row-,$(ROWS)) ## rows of DiscoEval's table: make rows ROWS="surface words"

.PHONY: rows row-surface row-words row-mean row-cls row-cls_mean row-sif row-nsp row-criteria row-dissent row-conpono
row-surface row-words: row-%: $(STAMP)
	$(call judge,--model baseline:$*)

row-mean row-cls row-cls_mean: row-%: $(STAMP)
	$(call judge,--model $(BACKBONE) --representation $*)

row-sif: $(STAMP)
	$(BIN)/discorpora train dissent/sif $(FIT)/dissent@all
	$(call judge,--model $(MODEL))

row-nsp row-criteria: $(STAMP)
	$(BIN)/discorpora train criteria/bigru_tiny --criteria $(if $(filter row-nsp,$@),"",nl,spp) $(FIT)/criteria
	$(call judge,--model $(MODEL))

row-dissent: $(STAMP)
	$(BIN)/discorpora train dissent/transformer $(ON_MINILM) --batch_size 16 --max_tokens 64 --learning_rate 1e-4 \
	    --max_steps 1000 $(FIT)/dissent@all
	$(call judge,--model $(MODEL) --representation mean)

row-conpono: $(STAMP)
	$(BIN)/discorpora train conpono/minilm $(ON_MINILM) --batch_size 2 --max_tokens 128 --vector mean --max_steps 60 \
	    --max_eval_rows 40 $(FIT)/conpono
	$(call judge,--model $(MODEL) --representation mean)

docs: $(STAMP)   ## the documentation as a site, in build/docs
	$(BIN)/pip install --quiet -c constraints.txt -e '.[docs]'
	$(BIN)/python docs/settings.py
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs

lock: $(STAMP)   ## requirements.lock, with hashes, from pyproject.toml and constraints.txt
	$(BIN)/pip install --quiet -c constraints.txt pip-tools
	mkdir -p build
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-annotate --no-header \
	    --no-emit-index-url --no-emit-find-links -c constraints.txt --extra dedup,eval,report,wikipedia,zoo \
	    --output-file build/requirements.lock pyproject.toml
	printf '%s\n' '# Every package with its hashes, for Linux on x86-64, Python 3.11 and a CPU: the versions of constraints.txt.' \
	    '# pip install --require-hashes -r requirements.lock; `make lock` writes it again.' \
	    '--extra-index-url https://download.pytorch.org/whl/cpu' > requirements.lock
	cat build/requirements.lock >> requirements.lock

clean:           ## remove everything that was built (not the virtual environment)
	rm -rf build
