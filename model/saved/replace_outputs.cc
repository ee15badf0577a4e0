#include "model/saved/replace_outputs.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>

#include "core/base/json.h"
#include "core/disk/disk.h"
#include "core/graph/op_def.h"
#include "model/saved/graph_part.h"
#include "model/saved/model_file.h"
#include "model/saved/model_folder.h"
#include "model/saved/predictions.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

// ---- the graph ----

bool is_argument(const Node& node) { return node.op->effect == Effect::kArgument; }

// A graph whose arguments are today's outputs.
Graph recorded(const std::vector<ColumnSpec>& today, const MakeOutputs& make) {
  std::vector<SignatureEntry> types;
  for (const ColumnSpec& column : today) types.emplace_back(column.type);
  const auto body = [&](const std::vector<TraceArgument>& arguments) {
    Outputs named;
    for (std::size_t i = 0; i < today.size(); ++i)
      named.emplace_back(today[i].name, std::get<Array>(arguments[i]));
    return make(named);
  };
  Graph graph = trace(body, types).graph;
  const auto pure = [](const Node& node) {
    return node.op->effect == Effect::kNone || is_argument(node);
  };
  if (graph.outputs.empty() || graph.arguments.size() != today.size() ||
      !std::ranges::all_of(graph.nodes, pure))
    throw InvalidArgumentError(
        "replace_outputs: the new outputs are computed from the model's own alone, and there is at "
        "least one: variables, iterators and other replicas are not there");
  return graph;
}

// The nodes of `added` stand behind those of `graph`, whose outputs are read in the place of the
// arguments of `added`.
Graph grafted(Graph graph, const Graph& added) {
  std::vector<std::int32_t> places(added.nodes.size());
  const auto moved = [&, today = graph.outputs](ValueRef value) {
    const auto from = static_cast<std::size_t>(value.node);
    if (!is_argument(added.nodes[from])) return ValueRef{places[from], value.output};
    const auto index = added.nodes[from].attributes.get<std::int64_t>("index");
    return today.at(static_cast<std::size_t>(index));
  };
  for (std::size_t i = 0; i < added.nodes.size(); ++i) {
    if (is_argument(added.nodes[i])) continue;
    places[i] = static_cast<std::int32_t>(graph.nodes.size());
    graph.nodes.push_back(added.nodes[i]);
    auto& inputs = graph.nodes.back().inputs;
    std::ranges::transform(inputs, inputs.begin(), moved);
  }
  graph.outputs.clear();
  for (const ValueRef output : added.outputs) graph.outputs.push_back(moved(output));
  graph.output_names = added.output_names;
  graph = without_unneeded(std::move(graph));
  verify(graph);
  return graph;
}

// ---- the folder ----

// Nothing writes to a file of a model again, so that two folders may share it.
void link_or_copy(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (error) fs::copy(from, to, fs::copy_options::copy_symlinks, error);
  if (error) raise_disk_error(error.value(), "copying", from.string());
}

// Takes over what lies in the folder `from` and is wanted, folders always.
void take_over(const std::string& from, const std::string& to,
               const std::function<bool(const std::string& name)>& wanted) {
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    const std::string name = fs::relative(entry.path(), from).generic_string();
    if (entry.symlink_status().type() == fs::file_type::directory)
      system_disk().make_folder(to + "/" + name);
    else if (wanted(name))
      link_or_copy(entry.path(), to + "/" + name);
  }
  for (const auto& entry : fs::recursive_directory_iterator(to))
    if (entry.symlink_status().type() == fs::file_type::directory) sync_folder(entry.path());
}

// The checksums are those of the files that had one. Other files that were put into the folder
// stay there, and may change later.
void write_beside(SavedModel& model, const Graph& graph, const std::string& from,
                  const std::string& to) {
  Disk& disk = system_disk();
  disk.make_folder(to);
  const std::vector<std::string> listed = model_files(from);
  const auto is_listed = [&](const std::string& name) {
    return std::ranges::count(listed, name) > 0;
  };
  take_over(from, to,
            [&](const std::string& name) { return is_listed(name) && name != kGraphFile; });
  const std::vector<std::byte> bytes = serialize(graph);
  disk.write_atomically(to + "/" + kGraphFile,
                        {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  model.folder = to;
  disk.write_atomically(to + "/" + kModelFile, model_text(model));
  take_over(from, to,
            [&](const std::string& name) { return !is_listed(name) && name != kModelFile; });
}

}  // namespace

// The folder's own name is exchanged, not that of a link to it, behind which the old model would
// stay.
SavedModel replace_outputs(const std::string& folder, const MakeOutputs& make,
                           const std::string& metadata) {
  const Json parsed = parse_json(metadata, "a model's metadata");
  if (!parsed.is_object())
    throw InvalidArgumentError(str("a model's metadata is a JSON object, not ", metadata));
  SavedModel model = read_saved_model(folder);
  const Graph graph = grafted(read_model_graph(model), recorded(model.outputs, make));
  model.outputs = output_columns(graph);
  model.metadata = json_text(parsed);
  model.cairn_version = CAIRN_VERSION;
  const std::string target = fs::canonical(folder).string();
  const TemporaryFolder made(temporary_name(target));
  system_disk().remove_tree(made.path());
  write_beside(model, graph, target, made.path());
  put_in_place(made, target);
  model.folder = folder;
  return model;
}

void verify_replaceable(const std::string& folder) {
  const TemporaryFolder tried(temporary_name(fs::canonical(folder).string()));
  try {
    system_disk().make_folder(tried.path());
  } catch (const Error&) {
    ErrorParts parts = error_parts(std::current_exception());
    parts.message +=
        str("; a model is replaced by a folder that is written beside it: make ",
            folder_of(tried.path()), " writable, or copy the model to a folder that is");
    throw_error(parts);
  }
}

}  // namespace cairn
