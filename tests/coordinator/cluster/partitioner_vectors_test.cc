// partitioners.json: (shape, dtype, options) -> parts along each axis.
#include "core/rows/layout.h"
#include "tests/strategy/vector_cases.h"

namespace cairn {
namespace {

// An option under its own name, where the case is about several kinds below "arguments"; null is as
// good as absent.
std::optional<std::int64_t> option(const Json& in, const char* name) {
  const Json& holder = in.contains("arguments") ? in.at("arguments") : in;
  if (!holder.contains(name) || holder.at(name).is_null()) return std::nullopt;
  return holder.at(name).get<std::int64_t>();
}

std::shared_ptr<const Partitioner> partitioner_of(const Json& in) {
  const std::string kind = in.at("partitioner");
  if (kind == "FixedShards") return FixedShardsPartitioner(option(in, "num_shards").value_or(2));
  if (kind == "MinSize") {
    MinSizeOptions options;
    options.min_shard_bytes = option(in, "min_shard_bytes").value_or(options.min_shard_bytes);
    options.max_shards = option(in, "max_shards").value_or(options.max_shards);
    options.bytes_per_string = option(in, "bytes_per_string").value_or(options.bytes_per_string);
    return MinSizePartitioner(options);
  }
  if (kind != "MaxSize") throw InvalidArgumentError("no partitioner \"" + kind + "\"");
  MaxSizeOptions options{.max_shard_bytes = option(in, "max_shard_bytes").value_or(64),
                         .max_shards = option(in, "max_shards")};
  options.bytes_per_string = option(in, "bytes_per_string").value_or(options.bytes_per_string);
  return MaxSizePartitioner(options);
}

Shape shape_of(const Json& recorded) {
  std::vector<std::int64_t> dims;
  for (const Json& dim : recorded)
    dims.push_back(dim.is_null() ? Shape::kUnknown : dim.get<std::int64_t>());
  return Shape(dims);
}

bool is_a_dtype_of_ours(const std::string& name) {
  try {
    parse_dtype(name);
    return true;
  } catch (const InvalidArgumentError&) {
    return false;
  }
}

void divides_a_variable(const Json& test) {
  const Json& in = test.at("in");
  const std::string dtype = in.value("dtype", "float32");
  if (dtype == "int8") {
    EXPECT_FALSE(is_a_dtype_of_ours(dtype)) << "docs/differences.md says so";
    return;
  }
  const int axis = in.value("axis", 0);
  const bool no_such_count =
      // ours: refused at once
      in.at("partitioner") == "FixedShards" && option(in, "num_shards").value_or(1) < 1;
  auto parts = [&] {
    return (*partitioner_of(in))(shape_of(in.at("shape")), parse_dtype(dtype), axis);
  };
  if (testing::refused(test.at("out")) || no_such_count)
    EXPECT_THROW(parts(), InvalidArgumentError);
  else
    EXPECT_EQ(parts(), test.at("out").at("ok").get<std::vector<std::int64_t>>());
}

void divides_what_is_known_of_a_shape(const Json& test) {
  if (test.at("in").at("shape").is_null()) {
    EXPECT_TRUE(testing::refused(test.at("out"))) << "no rank: Cairn has no such shape";
    return;
  }
  divides_a_variable(test);
}

// "min_bytes_neg": the partitioner, its option, and -4 or 0. All are refused, but a bound of no
// shards, which is none.
void makes_or_refuses_a_partitioner(const Json& test) {
  const std::string name = test.at("in").at("case");
  const std::int64_t value = name.ends_with("_neg") ? -4 : 0;
  Json in = {{"partitioner", name.starts_with("min")   ? "MinSize"
                             : name.starts_with("max") ? "MaxSize"
                                                       : "FixedShards"}};
  const std::string option = name.find("bytes") != std::string::npos
                                 ? (name.starts_with("min") ? "min_shard_bytes" : "max_shard_bytes")
                             : name.find("str") != std::string::npos ? "bytes_per_string"
                             : name.find("shards") != std::string::npos
                                 ? (name.starts_with("fixed") ? "num_shards" : "max_shards")
                                 : "";
  if (option.empty() || !(name.ends_with("_neg") || name.ends_with("_0")))
    return testing::fail_unknown(test, "the option");
  in[option] = value;
  const bool unbounded = name == "max_shards_0";
  EXPECT_EQ(testing::refused(test.at("out")), !unbounded);
  if (unbounded)
    EXPECT_EQ((*partitioner_of(in))(Shape{64, 1}, DType::kFloat32, 0),
              (std::vector<std::int64_t>{4, 1}));
  else
    EXPECT_THROW(partitioner_of(in), InvalidArgumentError);
}

const testing::Kinds kPartitionersKinds = {{"fixed", divides_a_variable},
                                           {"fixed_odd", divides_a_variable},
                                           {"min_size", divides_a_variable},
                                           {"max_size", divides_a_variable},
                                           {"bytes_per_string", divides_a_variable},
                                           {"axis", divides_a_variable},
                                           {"unknown_shape", divides_what_is_known_of_a_shape},
                                           {"constructor_errors", makes_or_refuses_a_partitioner}};

TEST(Vectors, Partitioners) { testing::run_cases("partitioners", kPartitionersKinds); }
TEST(Vectors, PartitionersOfFormsThatWereNotRecorded) {
  testing::run_more_cases("partitioners", kPartitionersKinds);
}

}  // namespace
}  // namespace cairn
