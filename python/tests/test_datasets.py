"""Datasets: sources, what becomes of their elements, and reading them in Python."""

import gzip
import json
import struct
import threading

import numpy as np
import pytest

import cairn

Dataset = cairn.Dataset


def values(dataset, column="value"):
    return [each[column].tolist() for each in dataset]


def slices(n=6):
    return Dataset.from_tensor_slices({"x": np.arange(float(n)), "t": np.array([str(i) for i in range(n)]), "y": np.arange(n) % 2}, label="y")


# ---- sources ----


def test_slices_are_a_dict_a_tuple_or_an_array():
    assert repr(slices()) == "<cairn.Dataset: x float64[], t string[], y int64[], the label>"
    pair = Dataset.from_tensor_slices((np.zeros((3, 2)), np.arange(3)))
    assert [column.name for column in pair.element_spec] == ["x", "y"] and pair.element_spec.label == "y"
    three = Dataset.from_tensor_slices(({"a": np.zeros(3)}, np.arange(3), np.ones(3)), label="target")
    assert [column.name for column in three.element_spec] == ["a", "target", "sample_weight"]
    assert values(Dataset.from_tensor_slices(np.arange(3)), "x") == [0, 1, 2]


def test_slices_of_different_lengths_are_an_error():
    with pytest.raises(ValueError, match='"y" has 2 rows'):
        Dataset.from_tensor_slices({"x": np.zeros(3), "y": np.zeros(2)})
    with pytest.raises(ValueError, match="rank 1 or more"):
        Dataset.from_tensor_slices({"x": 1.0})
    with pytest.raises(TypeError, match="a tuple of data"):
        Dataset.from_tensor_slices((1, 2, 3, 4))
    with pytest.raises(ValueError, match='a column "y" already'):
        Dataset.from_tensor_slices(({"y": np.zeros(2)}, np.zeros(2)))


def test_arrays_are_copied_unless_they_may_be_shared():
    array = np.zeros(3)
    copied = Dataset.from_tensor_slices({"x": array})
    shared = Dataset.from_tensor_slices({"x": array}, copy=False)
    array[:] = 7
    assert values(copied, "x") == [0, 0, 0] and values(shared, "x") == [7, 7, 7]


def test_from_tensors_is_one_element():
    assert values(Dataset.from_tensors({"x": np.arange(3)}), "x") == [[0, 1, 2]]


def test_ragged_columns_keep_their_rows():
    ragged = cairn.Ragged(np.arange(5), np.array([0, 2, 2, 5]))
    data = Dataset.from_tensor_slices({"ids": ragged, "y": np.arange(3)}, label="y")
    assert repr(data) == "<cairn.Dataset: ids int64[ragged], y int64[], the label>"
    batch = next(iter(data.batch(3)))
    assert batch["ids"].values.tolist() == [0, 1, 2, 3, 4] and batch["ids"].row_splits.tolist() == [0, 2, 2, 5]
    assert values(data.padded_batch(3), "ids") == [[[0, 1, 0], [0, 0, 0], [2, 3, 4]]]
    assert data.cardinality() == 3
    for splits, word in [([0, 2, 6], "ascend"), ([1, 5], "ascend"), ([[0, 5]], "one number more"), ([0.0, 5.0], "int64")]:
        with pytest.raises(ValueError, match=word):
            Dataset.from_tensor_slices({"ids": cairn.Ragged(np.arange(5), np.array(splits))})


def test_csv_files_by_dtypes_or_by_a_schema(tmp_path):
    path = tmp_path / "people.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("age,job,tags,income\n31,smith,a|b,>50K\n?,cook,,<=50K\n44,smith,c,>50K\n")
    columns = {"age": "float32", "income": str}
    assert values(Dataset.csv(path, columns, header=True).skip(2), "age") == [44]
    schema = cairn.CsvSchema(
        [
            cairn.CsvColumn("age", "float32", default_value="-1", missing_indicator=True),
            cairn.CsvColumn("tags", "string", separator="|"),
            cairn.CsvColumn("income", str),
        ],
        header=True, unknown="?", label=cairn.CsvLabel("income", positive=[">50K"]),
    )
    data = Dataset.csv([path, path], schema)
    assert data.cardinality() == 6
    batch = next(iter(data.batch(3)))
    assert batch["age"].tolist() == [31, -1, 44] and batch["age/missing"].tolist() == [0, 1, 0]
    assert batch["tags"].to_list() == [["a", "b"], [], ["c"]]
    assert batch["income"].tolist() == [1, 0, 1]
    filtered = cairn.CsvSchema({"age": "float32", "job": str}, header=True, where=["job == 'smith'"])
    assert values(Dataset.csv(path, filtered), "age") == [31, 44]


def test_lines_that_do_not_fit_are_an_error_or_left_out(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("1\ntwo\n3\n")
    with pytest.raises(ValueError, match="x.csv:2:1"):
        list(Dataset.csv(path, {"x": "float32"}))
    with pytest.raises(ValueError, match='leave such lines out with on_error="skip"'):
        list(Dataset.csv(path, {"x": "float32"}))
    path.with_name("y.csv").write_text("1,\n")
    with pytest.raises(ValueError, match="no CsvColumn.default_value"):
        list(Dataset.csv(path.with_name("y.csv"), {"x": "float32", "y": "float32"}))
    iterator = iter(Dataset.csv(path, {"x": "float32"}, on_error="skip"))
    assert [each["x"].item() for each in iterator] == [1, 3]
    assert iterator.skipped == 1
    with pytest.raises(ValueError, match='"error", "skip"'):
        Dataset.csv(path, {"x": "float32"}, on_error="ignore")
    (tmp_path / "empty.csv").touch()
    both = [tmp_path / "empty.csv", path]
    with pytest.raises(ValueError, match='empty_files="skip"'):
        list(Dataset.csv(both, {"x": str}))
    assert len(list(Dataset.csv(both, {"x": str}, empty_files="skip"))) == 3


def test_json_lines_text_lines_and_libsvm(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps({"a": i, "tags": ["t"] * i}) + "\n" for i in range(3)))
    columns = [cairn.CsvColumn("a", "int64"), cairn.CsvColumn("tags", "string", separator="|")]
    batch = next(iter(Dataset.json_lines(path, columns, label="a").batch(3)))
    assert batch["a"].tolist() == [0, 1, 2] and batch["tags"].row_splits.tolist() == [0, 0, 1, 3]
    lines = tmp_path / "x.txt"
    lines.write_text("one\n\ntwo\n")
    assert values(Dataset.text_lines(lines, skip_blank=True), "line") == ["one", "two"]
    svm = tmp_path / "x.svm"
    svm.write_text("+1 1:0.5 4:2\n-1 2:1\n")
    batch = next(iter(Dataset.libsvm(svm, label=cairn.CsvLabel("label", positive=["+1"])).batch(2)))
    assert batch["ids"].to_list() == [[0, 3], [1]] and batch["label"].tolist() == [1, 0]


def test_records_idx_and_criteo(tmp_path):
    records = tmp_path / "x.bin"
    records.write_bytes(b"".join(struct.pack("<fii", i, i, i + 1) for i in range(4)))
    fields = [cairn.RecordField("x", "float32"), cairn.RecordField("ids", "int32", count=2, ids=9)]
    data = Dataset.records(records, fields, label="x")
    assert data.cardinality() == 4 and values(data, "ids")[3] == [3, 4]
    idx = tmp_path / "x-idx2-ubyte"
    idx.write_bytes(struct.pack(">BBBBII", 0, 0, 8, 2, 2, 3) + bytes(range(6)))
    assert values(Dataset.idx([cairn.IdxColumn("image", idx, "uint8", shape=(3,))]), "image") == [[0, 1, 2], [3, 4, 5]]
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("\t".join(["1"] + ["5"] * 13 + ["68fd1e64"] * 26) + "\n")
    assert len(Dataset.criteo(clicks).element_spec) == 40 and len(list(Dataset.criteo(clicks))) == 1


def test_tfrecords_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "x.tfrecord"
    with cairn.TfRecordWriter(path) as file:
        for i in range(3):
            file.write({"x": [i, i + 0.5], "id": i, "tags": ["t"] * i})
    schema = [
        cairn.ExampleFeature("x", "float32", shape=(2,)), cairn.ExampleFeature("id", "int64", ids=9),
        cairn.ExampleFeature("tags", "string", ragged=True),
    ]
    batch = next(iter(Dataset.tfrecords(path, schema, label="id").batch(3)))
    assert batch["x"].tolist() == [[0, 0.5], [1, 1.5], [2, 2.5]] and batch["tags"].to_list() == [[], ["t"], ["t", "t"]]
    assert len(list(Dataset.tfrecords(path))) == 3
    with pytest.raises(KeyError), cairn.TfRecordWriter(tmp_path / "torn.tfrecord") as file:
        file.write(b"raw")
        raise KeyError
    assert not (tmp_path / "torn.tfrecord").exists()
    with pytest.raises(FileNotFoundError, match="none.tfrecord"):
        list(Dataset.tfrecords(tmp_path / "none.tfrecord", schema))


def test_made_up_clicks_can_be_predicted_as_well_as_they_say(tmp_path):
    clicks = cairn.CriteoLike(seed=3, rows_max=1000)
    told = clicks.write_records(str(tmp_path / "clicks.bin"), 0, 500)
    clicks.write_tsv(str(tmp_path / "clicks.tsv"), 0, 500)
    assert told["rows"] == 500 and 0.5 < told["auc"] < 1
    records, lines = Dataset.criteo_records(tmp_path / "clicks.bin"), Dataset.criteo(tmp_path / "clicks.tsv")
    assert values(records, "label") == values(lines, "label")


def test_files_are_listed_and_interleaved(tmp_path):
    for i in range(3):
        (tmp_path / f"part-{i}.csv").write_text(f"{i}\n{i}\n")
    files = cairn.list_files(str(tmp_path / "part-*.csv"))
    assert len(files) == 3
    mixed = Dataset.csv(files, {"x": "int64"}).interleave(3)
    assert values(mixed, "x") == [0, 1, 2, 0, 1, 2]
    with pytest.raises(FileNotFoundError):
        cairn.list_files(str(tmp_path / "nothing-*"))


def test_a_generator_gives_dicts_or_tuples_in_each_pass():
    passes = []

    def count():
        passes.append(1)
        for i in range(3):
            yield {"x": i, "tags": ["t"] * i, "v": np.full(2, i, "float32")}

    spec = [cairn.ColumnSpec("x", "float32"), cairn.ColumnSpec("tags", str, ragged=True), cairn.ColumnSpec("v", "float32", (2,))]
    data = Dataset.from_generator(count, spec)
    batches = list(data.batch(3).repeat(2))
    assert len(batches) == 2 and len(passes) == 2
    assert batches[1]["x"].tolist() == [0, 1, 2] and batches[0]["tags"].to_list() == [[], ["t"], ["t", "t"]]
    pairs = Dataset.from_generator(lambda: [(1, 2), (3, 4)], {"x": "int64", "y": "int32"}, label="y")
    assert values(pairs, "y") == [2, 4]
    assert values(Dataset.from_generator(lambda: iter([1.5]), {"x": "float32"}), "x") == [1.5]


def test_what_a_generator_does_wrong_is_told():
    spec = {"x": ("float32", (2,))}
    with pytest.raises(TypeError, match="a function that begins a pass"):
        Dataset.from_generator((i for i in range(3)), spec)
    with pytest.raises(ValueError, match='column "x" of element 0 is float32\\[3\\]'):
        list(Dataset.from_generator(lambda: [{"x": np.zeros(3, "float32")}], spec))
    with pytest.raises(ValueError, match='lacks the column "x"'):
        list(Dataset.from_generator(lambda: [{"y": 1}], spec))
    with pytest.raises(ValueError, match="is int64"):
        list(Dataset.from_generator(lambda: [{"x": np.zeros(1, "int64")}], {"x": ("string", (1,))}))

    def fails():
        yield {"x": np.zeros(2, "float32")}
        raise KeyError("mine")

    for data in [Dataset.from_generator(fails, spec), Dataset.from_generator(fails, spec).prefetch(2)]:
        iterator = iter(data)
        with pytest.raises(KeyError, match="mine"):
            list(iterator)


def test_a_generator_is_refused_under_parameter_servers_with_what_works_instead():
    data = Dataset.from_generator(lambda: [{"x": 1.0}], {"x": "float32"}).batch(1)
    with cairn.LocalCluster(ps=1, workers=1) as cluster:
        coordinator = cairn.ClusterCoordinator(cluster.strategy())
        with pytest.raises(RuntimeError, match="write its elements to files.*or train under a strategy without parameter servers"):
            coordinator.create_per_worker_dataset(data)


def test_datasets_side_by_side_and_mixed():
    zipped = Dataset.zip([Dataset.range(3), Dataset.from_tensor_slices({"x": np.zeros(5)})])
    assert len(list(zipped)) == 3
    mixed = Dataset.sample_from_datasets([Dataset.range(2), Dataset.range(3)], weights=[0.5, 0.5], seed=3)
    assert sorted(values(mixed)) == [0, 0, 1, 1, 2]
    assert values(Dataset.range(2).concatenate(Dataset.range(1))) == [0, 1, 0]


# ---- transformations ----


def test_orders_are_drawn_from_seeds():
    first, again = Dataset.range(50).shuffle(50, seed=3), Dataset.range(50).shuffle(50, seed=3)
    assert values(first) == values(again) != list(range(50))
    same = Dataset.range(9).shuffle(9, seed=1, reshuffle_each_iteration=False).repeat(2)
    assert values(same)[:9] == values(same)[9:]
    assert values(Dataset.range(9).shuffle(9, 1).for_pipeline(2)) != values(Dataset.range(9).shuffle(9, 1))


def test_elements_are_taken_skipped_repeated_and_dealt_out():
    data = Dataset.range(10)
    assert values(data.skip(7)) == [7, 8, 9] and values(data.take(2).repeat(2)) == [0, 1, 0, 1]
    assert values(data.shard(3, 1)) == [1, 4, 7]
    assert data.repeat().cardinality() is None and data.batch(4).cardinality() == 3
    halves = [slices(400).hash_split("t", *part).cardinality() for part in [(0, 0.9), (0.9, 1)]]
    assert sum(halves) == 400 and 0 < halves[1] < 100


def test_batches_windows_and_their_rows():
    data = Dataset.range(5)
    assert values(data.batch(2, drop_remainder=True)) == [[0, 1], [2, 3]]
    assert values(data.window(3, shift=1, drop_remainder=True)) == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert values(data.batch(2).rebatch(3)) == [[0, 1, 2], [3, 4]]
    assert values(data.batch(2).rebatch([1, 2])) == [[0], [1, 2], [3], [4]]
    assert values(data.batch(2).unbatch()) == [0, 1, 2, 3, 4]


def test_functions_are_recorded_and_run_on_every_element():
    data = Dataset.from_tensor_slices({"x": np.arange(6, dtype="float32"), "y": np.arange(6) % 2}, label="y").batch(2)
    mapped = data.map(lambda of, y: {"double": of["x"] * 2, "y": y + 1}, num_parallel_calls=cairn.AUTOTUNE)
    assert mapped.element_spec.label == "y"
    assert values(mapped, "double") == [[0, 2], [4, 6], [8, 10]] and values(mapped, "y") == [[1, 2]] * 3
    assert values(Dataset.range(9).filter(lambda of: of["value"] > 6)) == [7, 8]
    assert values(Dataset.range(9).take_while(lambda of: of["value"] < 2)) == [0, 1]
    assert values(Dataset.range(4).apply(lambda data: data.skip(2))) == [2, 3]
    with pytest.raises(TypeError, match="no truth value"):
        Dataset.range(3).map(lambda of: {"x": 1.0 if of["value"] > 1 else 0.0})
    with pytest.raises(ValueError, match="valeu"):
        Dataset.range(3).map(lambda of: {"x": of["valeu"]})


def test_a_cache_keeps_what_a_generator_gave(tmp_path):
    runs = []
    data = Dataset.from_generator(lambda: runs.append(1) or [1, 2], {"x": "int64"})
    assert values(data.cache().repeat(3), "x") == [1, 2] * 3 and len(runs) == 1
    file = slices().cache(str(tmp_path / "kept"), bytes_max=1 << 20)
    assert values(file, "x") == values(file, "x")
    assert len(list(tmp_path.iterdir())) == 1


def test_prefetch_reads_ahead_on_threads_of_its_own():
    def ids():
        for _ in range(20):
            yield threading.get_ident()

    read = Dataset.from_generator(ids, {"x": "int64"}).batch(1).prefetch(cairn.AUTOTUNE)
    assert threading.get_ident() not in {each["x"].item() for each in read}


def test_feature_columns_replace_raw_columns():
    data = Dataset.from_tensor_slices(
        {"age": np.array([20.0, 40.0]), "city": np.array(["Ulm", "Bonn"]), "at": np.array([0, 86400 * 40]), "text": np.array(["a b", "c"]), "y": np.arange(2)},
        label="y",
    )
    fitted = cairn.fit_numeric(data, "age")
    assert (fitted[0].mean, fitted[0].stddev) == (30, 10)
    cities = cairn.fit_vocabulary(data, "city")
    F = cairn.FeatureColumn
    columns = [
        F.numeric(fitted), F.vocabulary("city", cities), F.hashed("city", 10, name="hash"), F.bucketised("age", [30.0]),
        F.crossed(["city", "age_bucket"], 100), F.as_is("age"), F.words("text", 50, words_max=2), F.date_part("at", "month"),
    ]
    batch = next(iter(data.features(columns).batch(2)))
    assert batch["numeric"].tolist() == [[-1], [1]] and sorted(batch["city"].tolist()) == [1, 2]
    assert batch["age_bucket"].tolist() == [0, 1] and batch["at_month"].tolist() == [0, 1]
    assert batch["text"].row_splits.tolist() == [0, 3, 4] and batch["y"].tolist() == [0, 1]
    assert columns[1].ids == 3 and columns[4].kind == "crossed" and columns[4] == F.crossed(["city", "age_bucket"], 100)
    with pytest.raises(ValueError, match='"first", "last"'):
        F.vocabulary("city", ["a"], oov="middle")
