// Graphs, trees, searches.

// All nodes of the level look at their neighbours.
extern "C" __global__ void bfs_level(const int *starts, const int *neighbours, int *levels,
                                     int *changed, int nodes, int level)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || levels[node] != level)
        return;
    for (int i = starts[node]; i < starts[node + 1]; i++)
        if (levels[neighbours[i]] < 0) {
            levels[neighbours[i]] = level + 1;
            *changed = 1;
        }
}

extern "C" __global__ void find_roots(const int *parents, int *roots, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int root = i;
    while (parents[root] != root)
        root = parents[root];
    roots[i] = root;
}

extern "C" __global__ void lower_bound(const float *sorted, int size, const float *wanted,
                                       int *places, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float value = wanted[i];
    int low = 0, high = size;
    while (low < high) {
        int middle = (low + high) / 2;
        if (sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    places[i] = low;
}

struct Node {
    int feature;
    float threshold;
    int left, right;
};

// The leaf of a decision tree, a negative number, for each row of features.
extern "C" __global__ void decide(const Node *tree, const float *rows, int *leaves, int n,
                                  int features)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float *row = rows + i * features;
    int at = 0;
    while (at >= 0) {
        Node node = tree[at];
        at = row[node.feature] < node.threshold ? node.left : node.right;
    }
    leaves[i] = at;
}

// One step of Floyd and Warshall: ways through node k.
extern "C" __global__ void through(int *distances, int n, int k)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n)
        return;
    int way = distances[i * n + k] + distances[k * n + j];
    if (way < distances[i * n + j])
        distances[i * n + j] = way;
}
