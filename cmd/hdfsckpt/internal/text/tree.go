package text

// Node is a line of a tree and what hangs below it.
type Node struct {
	Text     string
	Children []*Node
}

// Add hangs a line below the node and returns it.
func (n *Node) Add(text string) *Node {
	child := &Node{Text: text}
	n.Children = append(n.Children, child)
	return child
}

// Print writes the node and everything below it.
func (n *Node) Print(p *Printer) {
	p.Line("%s", n.Text)
	n.printChildren(p, "")
}

func (n *Node) printChildren(p *Printer, indent string) {
	for i, child := range n.Children {
		branch, below := "├─ ", "│  "
		if i == len(n.Children)-1 {
			branch, below = "└─ ", "   "
		}
		p.Line("%s%s%s", indent, branch, child.Text)
		child.printChildren(p, indent+below)
	}
}
