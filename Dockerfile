# discorpora on a CPU. docs/how-to/container.md shows how to use it.
FROM python:3.11-slim-bookworm

WORKDIR /opt/discorpora
COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE discorpora.py ./
COPY corpora ./corpora
COPY extract ./extract
COPY zoo ./zoo
COPY workflows ./workflows
RUN pip install --no-cache-dir --no-deps . && useradd --create-home --uid 1000 researcher

USER 1000
WORKDIR /work
ENTRYPOINT ["discorpora"]
CMD ["--help"]
