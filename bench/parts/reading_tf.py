"""What tf.data makes of the same file: reading_tf.py FORMAT FILE, called by cairn-bench-reading.

Each format in the form that TensorFlow's guides give as the fastest: batches first, then one
vectorised parser for each. Prints MB of the file a second of processor time, the median of three
passes and their extremes, as cairn-bench-reading does.
"""
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402

BATCH = 256
COUNTS, IDS = 13, 26
F = tf.io.FixedLenFeature


def csv_columns(lines):
    defaults = [[0.0]] * (1 + COUNTS) + [[""]] * IDS
    return tf.io.decode_csv(lines, defaults, field_delim="\t", use_quote_delim=False)


def csv_features(lines):
    columns = csv_columns(lines)
    counts = tf.math.log1p(tf.stack(columns[1 : 1 + COUNTS], axis=1))
    ids = [tf.strings.to_hash_bucket_fast(text, 100_000) for text in columns[1 + COUNTS :]]
    return columns[0], counts, ids


def libsvm(lines):
    words = tf.strings.split(lines, " ")
    labels = tf.strings.to_number(words[:, :1].flat_values)
    pairs = tf.strings.split(words[:, 1:].flat_values, ":")
    flat = tf.reshape(pairs.flat_values, [-1, 2])
    ids = tf.strings.to_number(flat[:, 0], tf.int64)
    values = tf.strings.to_number(flat[:, 1])
    return labels, words[:, 1:].with_flat_values(ids), words[:, 1:].with_flat_values(values)


SCALARS = {"label": F([], tf.float32)}
SCALARS.update({f"I{i + 1}": F([], tf.float32) for i in range(COUNTS)})
SCALARS.update({f"C{i + 1}": F([], tf.int64) for i in range(IDS)})
FOUR = {name: SCALARS[name] for name in ("label", "I1", "C1")}
FOUR["C26"] = tf.io.VarLenFeature(tf.int64)
LISTS = {"label": F([], tf.float32), "dense": F([COUNTS], tf.float32), "ids": F([IDS], tf.int64)}
IMAGE = {"label": F([], tf.float32), "image": F([], tf.string)}


def image(records):
    parsed = tf.io.parse_example(records, IMAGE)
    return parsed["label"], tf.io.decode_raw(parsed["image"], tf.uint8)


def examples(features):
    return lambda records: tf.io.parse_example(records, features)


FORMATS = {
    "csv-features": (tf.data.TextLineDataset, csv_features),
    "csv-strings": (tf.data.TextLineDataset, csv_columns),
    "libsvm": (tf.data.TextLineDataset, libsvm),
    "scalars": (tf.data.TFRecordDataset, examples(SCALARS)),
    "four": (tf.data.TFRecordDataset, examples(FOUR)),
    "lists": (tf.data.TFRecordDataset, examples(LISTS)),
    "image": (tf.data.TFRecordDataset, image),
}


def one_pass(source, parse, path):
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    began = time.process_time()
    for _ in source(path).batch(BATCH).map(parse).with_options(options):
        pass
    return os.path.getsize(path) / 1e6 / (time.process_time() - began)


def main():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    source, parse = FORMATS[sys.argv[1]]
    rates = sorted(one_pass(source, parse, sys.argv[2]) for _ in range(3))
    print(f"{'    tf.data ' + tf.__version__:<52} {rates[1]:6.0f} MB/s  ({rates[0]:.0f} to {rates[2]:.0f})")


main()
