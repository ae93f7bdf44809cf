package store

import (
	"database/sql"
	"errors"
)

// names are the ids of names that this process has met. They are not dropped:
// there are few scenarios and models; should a client invent many, what is
// remembered is bounded.
type names struct{ ids map[string]int64 }

const mostNames = 10_000

func newNames() *names { return &names{map[string]int64{}} }

func (n *names) forget() { clear(n.ids) }

func (n *names) id(tx *sql.Tx, name string) (int64, error) {
	if id, ok := n.ids[name]; ok {
		return id, nil
	}
	var id int64
	err := tx.QueryRow("SELECT id FROM names WHERE name = ?", name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		var res sql.Result
		if res, err = tx.Exec("INSERT INTO names (name) VALUES (?)", name); err == nil {
			id, err = res.LastInsertId()
		}
	}
	if err != nil {
		return 0, err
	}
	if len(n.ids) >= mostNames {
		n.forget()
	}
	n.ids[name] = id
	return id, nil
}
