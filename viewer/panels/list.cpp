#include "viewer/panels/list.hpp"

namespace carousel::viewer {

std::vector<placed_panel> make_panels() {
    std::vector<placed_panel> all;
    for (const panel_row& row : panel_rows) all.push_back({row.where, row.make()});
    return all;
}

}  // namespace carousel::viewer
