#include "stages/vertex/vertex.hpp"

int main(int argc, char** argv) { return carousel::stage_main<carousel::stages::vertex>(argc, argv); }
